import type { InvalidRuleError, RuleSourceError, StoreUnavailableError } from "../errors.ts"
import type { Events } from "../events.ts"
import type { Decision } from "../limiter/decision.ts"
import type { ReadyOptions, RulesEvent, RulesStatus, StaleEvent } from "../rules/rule-book.ts"
import type { EvictionEvent } from "../stores/store.ts"
import type { Warning } from "../warnings.ts"
import type { RequestFacts } from "./request.ts"

/** What happened, for metrics and logs. A listener that throws hurts no request. */
export interface LimiterEvents<Request> {
  /** Every decision of `decide`, `enforce` and the adapters. */
  decision: [decision: Decision, request: Request]
  /** The store has failed to answer. Said once, until it has answered again. */
  degraded: [error: StoreUnavailableError]
  recovered: []
  /** Other rules of the source are in force than before. */
  rules: [event: RulesEvent]
  /** The rules could not be read, or not be taken; the last good ones stay. Once for an error that repeats itself. */
  "rule-error": [error: RuleSourceError | InvalidRuleError]
  /** The rules may be out of date, as loading has failed for so long. Once, until a load has succeeded. */
  "rules-stale": [event: StaleEvent]
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
  /**
   * Resolves when rules are loaded, rejects with why they cannot be; with `retry` it goes on waiting through failed
   * loads. `signal` ends the waiting. Holds the process until then, which the limiter does not otherwise.
   */
  ready(options?: ReadyOptions): Promise<void>
  /** Resolves when rules are in force that were loaded after the call; rejects with why they cannot be. */
  refresh(options?: { readonly signal?: AbortSignal | undefined }): Promise<void>
  /** Version, age and problems of the rules in force. Those of a list never age. */
  readonly rules: RulesStatus
  /** Ends what the limiter started: its own rule book, and its store if it made it. Afterwards it rejects. */
  close(): Promise<void>
}
