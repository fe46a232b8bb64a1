import type { Decision } from "../decision/decision.ts"
import type { InvalidRuleError, RuleSourceError, StoreUnavailableError } from "../ground/errors.ts"
import type { Events } from "../ground/events.ts"
import type { Warning } from "../ground/warnings.ts"
import type { RequestFacts } from "../request/request.ts"
import type { ReadyOptions, RulesEvent, RulesStatus, SignalOption, StaleEvent } from "../rules/rule-book.ts"
import type { EvictionEvent, RefundLostEvent } from "../stores/store.ts"

/** The call that a decision answers. */
export interface DecisionCall {
  /** "decide" is that of `enforce` too, and an adapter's; "hold" an adapter's at rules that have requests wait. */
  readonly operation: "decide" | "takeUpTo" | "acquire" | "hold"
  /**
   * Milliseconds from the call to the decision, with fractions, by a monotonic clock: never that of the options. What was
   * waited is in it, be it for the first rules or in a line.
   */
  readonly durationMs: number
}

/** What happened, for metrics and logs. A listener that throws hurts no request. */
export interface LimiterEvents<Request> {
  /**
   * Every decision of `decide`, `enforce`, `takeUpTo`, `acquire` and the adapters whose call began while this is listened to; none on
   * what is skipped or not enabled. In Fastify a request that is decided in steps has one, by all rules decided: when it is refused, has
   * passed its last step or has been answered.
   */
  decision: [decision: Decision, request: Request, call: DecisionCall]
  /** The store has failed to answer: each time. A decision was made without it. */
  "store-error": [error: StoreUnavailableError]
  /**
   * The store has failed to answer: the first time since it answered. Always followed by `recovered` before it comes again. The
   * log has at most one line a minute of it.
   */
  degraded: [error: StoreUnavailableError]
  /** The store has answered for ten seconds without a failure, after `degraded`. */
  recovered: []
  /** Other rules of the source are in force than before. */
  rules: [event: RulesEvent]
  /** The rules could not be read, or not be taken; the last good ones stay. Once for an error that repeats itself. */
  "rule-error": [error: RuleSourceError | InvalidRuleError]
  /** The rules may be out of date, as loading has failed for so long. Once, until a load has succeeded. */
  "rules-stale": [event: StaleEvent]
  /** A full memory store had to forget a client that was being refused. */
  evicted: [event: EvictionEvent]
  /**
   * Units could not be given back after a request that nobody waits for anymore (`refundWhen`, a client that left, a decision that
   * came too late). They may stay taken until their window passes.
   */
  "refund-lost": [event: RefundLostEvent]
  /** Something that the app should mend, though requests go on: what the logger is told, too. */
  warning: [warning: Warning]
  /** The limiter is closed: its last event. */
  closed: []
}

/** What a limiter is at, for metrics and health checks. */
export interface LimiterStatus {
  /** Whose rules and counters. */
  readonly service: string
  /** Requests in `acquire`, or at rules that hold them, that have no decision yet. */
  readonly waiting: number
  /**
   * Servers of the store that nobody waits for now, because they have not answered: 0 while all is well. Absent where the
   * store has no circuit breakers, as that in memory.
   */
  readonly openBreakers?: number
}

/** How much a call asks for. */
export interface CostOption {
  /** Units asked, instead of the option `cost`: a whole number from 0 up. 0 takes nothing and is admitted. */
  readonly cost?: number | undefined
}

/** How much `acquire` asks for, and how long it waits. */
export interface AcquireOptions extends CostOption {
  /** Ends the waiting: `acquire` rejects with its reason, and nothing stays taken. */
  readonly signal?: AbortSignal | undefined
  /** The longest to wait, in milliseconds: default as long as it takes. */
  readonly maxWaitMs?: number | undefined
  /** How many may wait for one counter, in this process: default 1,000. */
  readonly maxWaiting?: number | undefined
}

/** What `peek` looks at. */
export interface PeekOptions extends CostOption {
  /**
   * Names of rules: only these, also if their `match` is not for this request. A request with only the client's fields is enough
   * then. Default: the rules that `decide` would ask.
   */
  readonly rules?: readonly string[] | undefined
}

/** Which rules a client is unblocked under. */
export interface UnblockOptions {
  /** Names of rules: only these. Default: all that count the client by itself, and none of the whole service. */
  readonly rules?: readonly string[] | undefined
}

/** For how long a client is blocked, and under which rules. */
export interface BlockOptions extends UnblockOptions {
  /** How long, from now: milliseconds, or a text such as "1 hour"; at most 366 days. */
  readonly for: number | string
}

/** Which counters `reset` forgets. */
export interface ResetOptions {
  /** Names of rules: only theirs. Default: all of the client's own, and none of the whole service. */
  readonly policies?: readonly string[] | undefined
}

/**
 * The decision maker. `Request` is what it is asked about: in an adapter the framework's own object, else an object
 * with any members of {@link RequestFacts}.
 */
export interface Limiter<Request = RequestFacts> extends Events<LimiterEvents<Request>> {
  /**
   * Takes the units under every rule, atomically, or refuses and takes none. Rejects only with
   * {@link InvalidOptionError} for a wrong cost, or for a text, a number or nothing in place of a request that none of the
   * `fields` could read, and with {@link ClosedError} when the limiter is closed: never because of the store or the rules.
   * @example
   * ```ts
   * import { createLimiter } from "@sluice/core"
   *
   * const limiter = createLimiter({ limit: 10, window: "1 minute" })
   * const client = { remoteAddress: "192.0.2.7" }
   *
   * await limiter.decide(client, { cost: 6 }) // allowed: true, remaining: 4, cost: 6
   * await limiter.decide(client, { cost: 5 }) // allowed: false, remaining: 4, cost: 0
   * await limiter.decide(client, { cost: 4 }) // allowed: true, remaining: 0
   * ```
   */
  decide(request: Request, options?: CostOption): Promise<Decision>
  /** The same as `decide`, and rejects with {@link RateLimitExceededError} when refused. */
  enforce(request: Request, options?: CostOption): Promise<Decision>
  /**
   * Waits until it is admitted under every rule and takes the units: first come, first served within the process among
   * requests that share a counter, without polling. What a leaky bucket delays is waited too.
   *
   * Rejects with {@link RateLimitExceededError} at once where waiting is in vain: the request can never succeed, has to wait longer
   * than `maxWaitMs`, or finds `maxWaiting` waiting; with the signal's reason when that is aborted; and with {@link ClosedError}
   * when the limiter is closed. Nothing stays taken then.
   * @example
   * ```ts
   * import { createLimiter } from "@sluice/core"
   *
   * // Ten calls a second to somebody else's service: the eleventh waits for the next second.
   * const limiter = createLimiter({ limit: 10, window: "1 second", field: "service", algorithm: "fixed-window" })
   * const { remaining } = await limiter.acquire({}, { maxWaitMs: 5_000 })
   * remaining // => 9
   * ```
   */
  acquire(request: Request, options?: AcquireOptions): Promise<Decision>
  /**
   * Takes as many units as there are, `units` at most, times each rule's own cost: `cost` of the decision says how many
   * have been granted. What is granted is taken at once, under every rule or none. Refused only when there is not a single
   * one, and then `retryAfterMs` is the wait for one. `units` is a whole number from 0 up, in place of the option `cost`.
   *
   * Others may come between the question how many there are and the taking of them; then fewer are tried, a few times.
   * @example
   * ```ts
   * import { createLimiter } from "@sluice/core"
   *
   * const limiter = createLimiter({ limit: 10, window: "1 minute" })
   * const client = { remoteAddress: "192.0.2.7" }
   *
   * await limiter.takeUpTo(client, 7) // allowed: true, cost: 7, remaining: 3
   * await limiter.takeUpTo(client, 7) // allowed: true, cost: 3, remaining: 0
   * await limiter.takeUpTo(client, 7) // allowed: false, cost: 0
   * ```
   */
  takeUpTo(request: Request, units: number): Promise<Decision>
  /**
   * Whether `decide` would admit the request, and what is left before it: takes nothing, so `cost` is 0. Facts alone will do, for
   * tests and tools.
   */
  peek(request: Request | RequestFacts, options?: PeekOptions): Promise<Decision>
  /**
   * Gives back the units of a decision, once; to the window they were taken in, so nothing when that has passed. It takes the
   * decision itself, of this limiter: rejects with {@link InvalidOptionError} for a copy of one, such as one that has been through
   * JSON, and for another limiter's.
   *
   * Waits for the store as long as a decision does (`storeTimeoutMs`), and rejects with {@link StoreUnavailableError} when it fails.
   * If the error's `outcome` is "not-applied", nothing was given back and you can call `refund` again. If it is "unknown", the units
   * may have been given back, and another call has no effect.
   */
  refund(decision: Decision): Promise<void>
  /**
   * Makes of the units that a decision has taken those that were used, a whole number from 0 up: the rest is given back, or
   * what is missing is charged, even beyond the limit; to the window they were taken in, so nothing when that has passed.
   * Once, and not after a refund, nor a refund after it. Nothing of a refused decision. It takes what `refund` takes, and
   * fails as `refund` does.
   * @example
   * ```ts
   * import { createLimiter } from "@sluice/core"
   *
   * const limiter = createLimiter({ limit: 1_000, window: "1 minute" })
   * const client = { remoteAddress: "192.0.2.7" }
   *
   * const decision = await limiter.decide(client, { cost: 200 }) // remaining: 800
   * await limiter.settle(decision, 350) // it was 350: remaining is 650 now
   * ```
   */
  settle(decision: Decision, units: number): Promise<void>
  /**
   * What this limiter has decided on a request that an adapter has brought before it, also where the decision of another one binds and is
   * the one on the request; undefined where it has not met the request. Where it is mounted twice, what it has decided last.
   */
  decisionOn(request: Request & object): Decision | undefined
  /**
   * Forgets the counters of this request's client under every rule, those of routes too, and a block; a counter of the whole
   * service only when its rule is named. Waits for the store as long as a decision does, and rejects with
   * {@link StoreUnavailableError} when it fails; to call it again does no harm.
   */
  reset(request: Request | RequestFacts, options?: ResetOptions): Promise<void>
  /**
   * Blocks this request's client: rules refuse it until the time has passed, with `refusal: "blocked"` and the rest of the block as
   * `retryAfterMs`. A longer block stays as it is. Requests of cost 0 and shadow rules are not affected.
   *
   * The block is in the store. This limiter sees it at once; other processes see it within a second of their next decision.
   * Waits for the store as `reset` does, and rejects with {@link StoreUnavailableError} when it fails; you can call it again.
   * Rejects with {@link InvalidOptionError} if no rule could refuse the client: it lacks the field, an allow list names it, or its
   * limit is Infinity.
   * @example
   * ```ts
   * import { createLimiter } from "@sluice/core"
   *
   * const limiter = createLimiter({ limit: 10, window: "1 minute" })
   * const client = { remoteAddress: "192.0.2.7" }
   *
   * await limiter.block(client, { for: "1 hour" })
   * const { refusal } = await limiter.decide(client)
   * refusal // => "blocked"
   * await limiter.unblock(client)
   * ```
   */
  block(request: Request | RequestFacts, options: BlockOptions): Promise<void>
  /**
   * Ends a block of this request's client, also one by a penalty, and keeps what was counted. Another process may remember a refusal
   * for as long as the store's `denyCacheMs`. Rejects as `reset` does.
   */
  unblock(request: Request | RequestFacts, options?: UnblockOptions): Promise<void>
  /**
   * Resolves when rules are loaded, rejects with why they cannot be; with `retry` it goes on waiting through failed
   * loads. `signal` ends the waiting. Holds the process until then, which the limiter does not otherwise.
   */
  ready(options?: ReadyOptions): Promise<void>
  /** Resolves when rules are in force that were loaded after the call; rejects with why they cannot be. */
  refresh(options?: SignalOption): Promise<void>
  /** Version, age and problems of the rules in force. Those of a list never age. */
  readonly rules: RulesStatus
  /** What it is at. Asks nobody. */
  readonly status: LimiterStatus
  /** Ends what the limiter started: its own rule book, and its store if it made it. Afterwards it rejects. */
  close(): Promise<void>
}
