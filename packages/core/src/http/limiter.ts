import type { InvalidRuleError, Problem, RuleSourceError, StoreUnavailableError } from "../errors.ts"
import type { Decision } from "../limiter/decision.ts"
import type { Events } from "../limiter/events.ts"
import type { EvictionEvent } from "../stores/store.ts"
import type { RequestFacts } from "./request.ts"
import type { Warning } from "./warnings.ts"

/** What happened, for metrics and logs. A listener that throws hurts no request. */
export interface LimiterEvents<Request> {
  /** Every decision of `decide`, `enforce` and the adapters. */
  decision: [decision: Decision, request: Request]
  /** The store has failed to answer. Said once, until it has answered again. */
  degraded: [error: StoreUnavailableError]
  recovered: []
  /** Rules have been loaded from the source. `problems` are those set aside. */
  rules: [
    loaded: {
      readonly names: readonly string[]
      readonly version?: number
      readonly problems: readonly Problem[]
    },
  ]
  /** The rules could not be read; the last good ones stay in force. */
  "rule-error": [error: RuleSourceError | InvalidRuleError]
  /** A full memory store had to forget a client that was being refused. */
  evicted: [event: EvictionEvent]
  warning: [warning: Warning]
}

export interface CostOption {
  /** Units asked, instead of the option `cost`: a whole number from 0 up. 0 takes nothing and is admitted. */
  readonly cost?: number | undefined
}

/**
 * The decision maker. `Request` is what it is asked about: in an adapter the framework's own object, else an object
 * with any members of RequestFacts.
 */
export interface Limiter<Request = RequestFacts> extends Events<LimiterEvents<Request>> {
  /** Takes the units under every rule, or refuses and takes none. Rejects only for a wrong cost, or when closed. */
  decide(request: Request, options?: CostOption): Promise<Decision>
  /** The same, and rejects with RateLimitExceededError when refused. */
  enforce(request: Request, options?: CostOption): Promise<Decision>
  /** The decision that `decide` would make, taking nothing. Facts alone will do, for tests and tools. */
  peek(request: Request | RequestFacts, options?: CostOption): Promise<Decision>
  /** Gives back the units of a decision, once; to the window they were taken in, so nothing when that has passed. */
  refund(decision: Decision): Promise<void>
  /** Forgets the counters of this request's client; a counter of the whole service only when its rule is named. */
  reset(
    request: Request | RequestFacts,
    options?: { readonly policies?: readonly string[] | undefined },
  ): Promise<void>
  /** Resolves when rules are loaded, rejects with RuleSourceError when they cannot be. `signal` ends the waiting. */
  ready(options?: { readonly signal?: AbortSignal | undefined }): Promise<void>
  /** Ends what the limiter started: its rule book, and its store if it made it. Afterwards it rejects. */
  close(): Promise<void>
}
