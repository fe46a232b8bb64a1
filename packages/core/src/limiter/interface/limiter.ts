import type { Decision } from "../../decision/decision.ts"
import type { InvalidRuleError, RuleSourceError, StoreUnavailableError } from "../../ground/errors.ts"
import type { Events } from "../../ground/events.ts"
import type { SignalOption } from "../../ground/signal.ts"
import type { Warning } from "../../ground/warnings.ts"
import type { RequestFacts } from "../../request/request.ts"
import type { ReadyOptions, RulesEvent, RulesStatus, StaleEvent } from "../../rules/live-rules.ts"
import type { ChargesLostEvent, CounterKey, EvictionEvent, RefundLostEvent } from "../../stores/store.ts"
import type { ChargeCounts, LeaseCounts } from "../../stores/store-status.ts"
import type { NearLimitEvent } from "./near-limit-event.ts"
import type { RuleExplanation } from "./rule-explanation.ts"

/** The call that led to a decision. */
export interface DecisionCall {
  /** "decide" includes `enforce` and adapters. "hold" is an adapter's call under rules that hold requests. */
  readonly operation: "decide" | "takeUpTo" | "acquire" | "hold"
  /**
   * Milliseconds from the call to the decision, with fractions. Measured by a monotonic clock, never by the `clock`
   * option. Includes any wait for the first rules, for a promise of the app's functions, or in a queue.
   */
  readonly durationMs: number
  /**
   * The counters of the rules that apply to the request. `policy.name` is the name of the rule. `partition` identifies
   * the client.
   */
  readonly counters: readonly CounterKey[]
}

/** Events for metrics and logs. A listener that throws does not affect any request. */
export interface LimiterEvents<Request> {
  /**
   * Emitted for every decision of `decide`, `enforce`, `takeUpTo`, `acquire` and the adapters. A listener gets it only
   * if it was added before the call began. Skipped requests and a disabled limiter emit none.
   *
   * In Fastify, a request that is decided in steps emits one event for all its rules. The event is emitted when the
   * request is refused, has passed its last step or has been answered.
   */
  decision: [decision: Decision, request: Request, call: DecisionCall]
  /**
   * Emitted when a client has used a percentage of its limit that the rule's `notify` lists. Emitted at most once for
   * each percentage, rule, client and window in this process, as long as it remembers the client: it remembers 10,000.
   * The request is the first one that was decided at this level.
   */
  "near-limit": [event: NearLimitEvent, request: Request]
  /** Emitted each time the store fails to respond. A decision was made without it. */
  "store-error": [error: StoreUnavailableError]
  /**
   * Emitted when the store fails to respond for the first time since it last responded. Always followed by `recovered`
   * before it is emitted again. The log gets one line for each of them.
   */
  degraded: [error: StoreUnavailableError]
  /** Emitted after `degraded`, when the store has responded for ten seconds without a failure. */
  recovered: []
  /** Emitted when other rules of the source have come into force. */
  rules: [event: RulesEvent]
  /**
   * Emitted when rules cannot be read or are rejected. The last good rules stay in force. Emitted once for a repeated
   * error.
   */
  "rule-error": [error: RuleSourceError | InvalidRuleError]
  /**
   * Emitted when the rules may be out of date, because loading has failed for a long time. Emitted once until a load
   * succeeds.
   */
  "rules-stale": [event: StaleEvent]
  /** Emitted when a full memory store evicted a counter that still had an effect. */
  evicted: [event: EvictionEvent]
  /**
   * Emitted when units could not be refunded in the background: after `refundWhen`, for a client that left, or for a
   * decision that came too late. The units may stay taken until their window passes.
   */
  "refund-lost": [event: RefundLostEvent]
  /**
   * Emitted when other counters did not confirm units that this process has admitted: those of another data center
   * (`mirroredStore`), or the shared counters of a `writeBackStore`. Those counters may admit the same units again.
   */
  "charges-lost": [event: ChargesLostEvent]
  /** Emitted for a problem that the app should fix, although requests continue. The logger gets the same warning. */
  warning: [warning: Warning]
  /** Emitted when the limiter is closed. This is the last event. */
  closed: []
}

/** The names of all events of a limiter. */
export const LIMITER_EVENTS: Readonly<Record<keyof LimiterEvents<unknown>, true>> = {
  decision: true,
  "near-limit": true,
  "store-error": true,
  degraded: true,
  recovered: true,
  rules: true,
  "rule-error": true,
  "rules-stale": true,
  evicted: true,
  "refund-lost": true,
  "charges-lost": true,
  warning: true,
  closed: true,
}

/** The current state of a limiter, for metrics and health checks. */
export interface LimiterStatus {
  /** The service whose rules and counters the limiter uses. */
  readonly service: string
  /** Number of requests without a decision in `acquire`, or under rules that hold them. */
  readonly waiting: number
  /**
   * Number of the store's servers whose circuit breaker is open: 0 while all is well. Absent if the store has no
   * circuit breakers, such as the memory store.
   */
  readonly openBreakers?: number
  /** Counts of the units that the store holds in leases. Absent if the store does not lease. */
  readonly leases?: LeaseCounts
  /** The state of charges to other data centers, by data center. Absent without a `mirroredStore`. */
  readonly mirrors?: Readonly<Record<string, ChargeCounts>>
  /** The state of charges to the shared counters. Absent without a `writeBackStore`. */
  readonly writeBack?: ChargeCounts
}

/** The units that a call requests. */
export interface CostOption {
  /** Units to take, overriding the option `cost`: 0 or a positive whole number. 0 takes nothing and is admitted. */
  readonly cost?: number | undefined
}

/** The units that `acquire` requests, and how long it waits. */
export interface AcquireOptions extends CostOption {
  /** Aborting it ends the wait: `acquire` rejects with the signal's reason, and nothing stays taken. */
  readonly signal?: AbortSignal | undefined
  /** The longest wait in milliseconds. Default: unlimited. */
  readonly maxWaitMs?: number | undefined
  /** Number of requests that may wait for one counter, in this process. Default: 1,000. */
  readonly maxWaiting?: number | undefined
}

/** The units and rules that `peek` and `explain` consider. */
export interface PeekOptions extends CostOption {
  /**
   * Names of rules. Only these are read, even if their `match` does not apply to this request. Then a request with only
   * the client's fields is enough. Default: the rules that `decide` would check.
   */
  readonly rules?: readonly string[] | undefined
}

/** The rules under which a client is unblocked. */
export interface UnblockOptions {
  /**
   * Names of the rules whose blocks of the client are removed. Default: all rules that count by client, not rules for
   * the whole service.
   */
  readonly rules?: readonly string[] | undefined
}

/** The duration of a client's block, and the rules it applies to. */
export interface BlockOptions extends UnblockOptions {
  /** Duration from now: milliseconds, or a string such as "1 hour"; at most 366 days. */
  readonly for: number | string
  /**
   * Names of rules to block the client under. Default: all rules that count by client, not rules for the whole
   * service.
   */
  readonly rules?: readonly string[] | undefined
}

/** The counters that `reset` resets. */
export interface ResetOptions {
  /** Names of rules whose counters are reset. Default: all of the client's own counters, none of the whole service. */
  readonly rules?: readonly string[] | undefined
}

/**
 * The decision maker. `Request` is the type of the requests that it decides. In an adapter this is the framework's own
 * request, otherwise an object with any members of {@link RequestFacts}.
 */
export interface Limiter<Request = RequestFacts> extends Events<LimiterEvents<Request>> {
  /**
   * Takes the units under every rule, atomically, or refuses and takes none.
   *
   * Never rejects because of the store or the rules. Rejects with {@link InvalidOptionError} for an invalid cost. Also
   * rejects for a string, a number or nothing as the request, if none of the `fields` could read it. Rejects with
   * {@link ClosedError} when the limiter is closed.
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
  /** Decides as `decide` does, but rejects with {@link RateLimitExceededError} when the request is refused. */
  enforce(request: Request, options?: CostOption): Promise<Decision>
  /**
   * Waits until the request is admitted under every rule, and takes the units. Within the process, requests that share
   * a counter are served first come, first served, without polling. A leaky bucket's delay is waited for, too.
   *
   * Rejects immediately with {@link RateLimitExceededError} if waiting is pointless. That is the case if the request
   * can never succeed, has to wait longer than `maxWaitMs`, or finds `maxWaiting` requests waiting. Rejects with the
   * signal's reason when it is aborted, and with {@link ClosedError} when the limiter is closed. In all these cases
   * nothing stays taken.
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
   * Takes as many units as are available, at most `units`. Each rule charges its own cost for a unit. The decision's
   * `cost` is the number of units granted. These units are taken immediately, under every rule or none. The request is
   * refused only if not a single unit is available, and then `retryAfterMs` is the wait for one. `units` is 0 or a
   * positive whole number, and overrides the option `cost`.
   *
   * Other requests may take units between reading how many are available and taking them. Then fewer units are tried, a
   * few times.
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
   * Returns whether `decide` would admit the request, and what remains before it. Takes nothing, so `cost` is 0. Plain
   * facts are accepted as the request, for tests and tools.
   */
  peek(request: Request | RequestFacts, options?: PeekOptions): Promise<Decision>
  /**
   * Returns, for each rule in order, whether `decide` would check this request under it, in which counter and with what
   * cost, or why the rule does not apply. The call does not ask the store, so it takes nothing. Empty if the request is
   * not counted at all, because of `skip` or a disabled limiter. Rejects as `peek` does.
   * @example
   * ```ts
   * import { createLimiter } from "@sluice/core"
   *
   * const limiter = createLimiter({ limit: 5, window: "1 minute", name: "login", match: { path: "/login" } })
   *
   * const [login] = await limiter.explain({ method: "POST", url: "/login", remoteAddress: "192.0.2.7" })
   * login?.counter?.partition // => "192.0.2.7"
   * const [other] = await limiter.explain({ method: "GET", url: "/", remoteAddress: "192.0.2.7" })
   * other?.mismatches // => [{ member: "match.path" }]
   * ```
   */
  explain(request: Request | RequestFacts, options?: PeekOptions): Promise<readonly RuleExplanation[]>
  /**
   * Refunds the units of a decision to the window they were taken in, so it is a no-op when that window has passed.
   * Only the first call has an effect. The decision must be the object that this limiter returned. Rejects with
   * {@link InvalidOptionError} for a copy, such as one that went through JSON, for another limiter's decision, and for
   * any other object.
   *
   * Waits for the store for at most `storeTimeoutMs`, as a decision does, and rejects with
   * {@link StoreUnavailableError} when the store fails. If the error's `outcome` is "not-applied", nothing was refunded
   * and you can call `refund` again. If it is "unknown", the units may have been refunded, and another call does
   * nothing.
   */
  refund(decision: Decision): Promise<void>
  /**
   * Corrects the units that a decision has taken to the units that were used, 0 or a positive whole number. Unused units
   * are refunded. Missing units are charged, even beyond the limit. The correction applies to the window the units were
   * taken in, so it is a no-op when that window has passed. A bucket is charged in full for as long as a full bucket
   * takes to refill.
   *
   * Only the first call to `settle` or `refund` has an effect. For a refused decision it is a no-op. `settle` accepts
   * the same decisions as `refund`, and rejects as `refund` does.
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
   * Returns what this limiter has decided on a request that passed one of its adapters. This holds even if another
   * limiter's decision is stricter and is the one on the request. Returns undefined if this limiter has not seen the
   * request. If the limiter is mounted twice, returns its last decision.
   */
  decisionOn(request: Request & object): Decision | undefined
  /**
   * Resets the counters of this request's client under every rule, including rules of routes, and ends a block. A
   * counter of the whole service is reset only if its rule is named. Waits for the store as long as a decision does,
   * and rejects with {@link StoreUnavailableError} when it fails. The call can be repeated safely.
   */
  reset(request: Request | RequestFacts, options?: ResetOptions): Promise<void>
  /**
   * Blocks this request's client. Rules refuse the client until the time has passed, with `refusal: "blocked"` and the
   * rest of the block as `retryAfterMs`. A longer block stays in force. Requests of cost 0 and shadow rules are not
   * affected.
   *
   * The block is kept in the store. This limiter applies it immediately, other processes within a second of their next
   * decision. Waits for the store as `reset` does, and rejects with {@link StoreUnavailableError} when it fails. The
   * call can be repeated safely.
   *
   * Rejects with {@link InvalidOptionError} if no rule could refuse the client. That is the case if the request has
   * neither the field nor an address, the client is on an allow list, or the client's limit is Infinity.
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
   * Ends a block of this request's client, including one by a penalty, and keeps its counts. Growing blocks start with
   * their first length again. Another process may cache a refusal for up to the store's `denyCacheMs`. Rejects as
   * `reset` does.
   */
  unblock(request: Request | RequestFacts, options?: UnblockOptions): Promise<void>
  /**
   * Resolves when rules are loaded. Rejects with the reason if loading fails; with `retry`, it keeps waiting through
   * failed loads. `signal` ends the wait. While it waits, it keeps the process alive, which the limiter otherwise does
   * not.
   */
  ready(options?: ReadyOptions): Promise<void>
  /** Resolves when rules that were loaded after the call are in force. Rejects with the reason if loading fails. */
  refresh(options?: SignalOption): Promise<void>
  /** Version, age and problems of the rules in force. The rules of a list never age. */
  readonly rules: RulesStatus
  /** The current state of the limiter. Reading it does not ask the store. */
  readonly status: LimiterStatus
  /** Closes what the limiter created: its rules, and its store unless the app gave one. Later calls reject. */
  close(): Promise<void>
}
