import type { Decision } from "../../decision/decision.ts"
import type { PermitCounts } from "../../decision/permits/ledger.ts"
import type { Reservation } from "../../decision/reservation.ts"
import type { InvalidRuleError, RuleSourceError, StoreUnavailableError } from "../../ground/errors.ts"
import type { Events } from "../../ground/events.ts"
import type { Awaitable } from "../../ground/maybe-promise.ts"
import type { SignalOption } from "../../ground/signal.ts"
import type { Warning } from "../../ground/warnings.ts"
import type { RequestFacts } from "../../request/request.ts"
import type { ReadyOptions, RulesEvent, RulesStatus, StaleEvent } from "../../rules/live-rules.ts"
import type {
  ChargesLostEvent,
  CounterKey,
  EvictionEvent,
  Refund,
  RefundLostEvent,
} from "../../stores/store.ts"
import type { ChargeCounts, LeaseCounts } from "../../stores/store-status.ts"
import type { NearLimitEvent } from "./near-limit-event.ts"
import type { RuleExplanation } from "./rule-explanation.ts"
import type { RuleUsage } from "./rule-usage.ts"

/** The call that led to a decision. */
export interface DecisionCall {
  /** "decide" includes `enforce` and adapters. "hold" is the call of an adapter whose rules hold requests. */
  readonly operation: "decide" | "takeUpTo" | "acquire" | "hold"
  /**
   * Milliseconds from the call to the decision, with fractions. The duration is measured by a monotonic clock, never
   * by the `clock` option. It includes any wait for the first rules, for a promise of the app's functions, or in a
   * queue.
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
   * Emitted for every decision of `decide`, `enforce`, `takeUpTo`, `acquire` and the adapters. Only listeners that
   * were added before the call began receive the event. Skipped requests and a disabled limiter emit no event.
   *
   * In Fastify, a request that is decided in steps emits one event for all its rules. This event is emitted when the
   * request is refused, has passed its last step, or has received its response.
   */
  decision: [decision: Decision, request: Request, call: DecisionCall]
  /**
   * Emitted for the same decisions as `decision`, with the call's `counters` only. A listener costs less, because no
   * clock is read. In Fastify, each step of a request emits its own event.
   */
  decided: [decision: Decision, counters: readonly CounterKey[]]
  /**
   * Emitted when a client's used percentage of its limit reaches a threshold in the rule's `notify`. Emitted at most
   * once for each threshold, rule, client and window in this process, which remembers 10,000 clients. The request is
   * the first one that was decided at this threshold. For an algorithm other than "fixed-window", the window begins
   * with this event. With a `leasedStore` or a `writeBackStore`, the event may be early or late.
   */
  "near-limit": [event: NearLimitEvent, request: Request]
  /**
   * Emitted with the arguments of `decision` when a rule refuses a client for the first time in the rule's window. For
   * an algorithm other than "fixed-window", the window begins with this event. This process remembers 10,000 clients,
   * and several processes emit the event separately. A refusal because no rules have loaded emits none.
   */
  "first-refusal": [decision: Decision, request: Request, call: DecisionCall]
  /**
   * Emitted when `grant` of this limiter has granted units, or has taken them back (negative units). `policy.name` of a
   * counter is the name of the rule, and `policy.periods` contains the boundaries of its periods.
   */
  granted: [units: number, counters: readonly CounterKey[]]
  /**
   * Emitted after `refund`, `settle`, `refundWhen` or `settleReservation` has corrected the units of a decision. `units` of
   * a refund were given back, or charged if they are negative. `degraded` is true if the decision was made without the
   * shared store. If the call fails, no event is emitted, although the store may have corrected the units.
   */
  corrected: [refunds: readonly Refund[], degraded: boolean]
  /** Emitted each time the store fails to respond, so that a decision is made without the store. */
  "store-error": [error: StoreUnavailableError]
  /**
   * Emitted at the beginning of an outage, when the store fails to respond for the first time. `recovered` is always
   * emitted before the next `degraded`. Each of these two events is logged in one line.
   */
  degraded: [error: StoreUnavailableError]
  /** Emitted after `degraded`, when the store has responded for ten seconds without a failure. */
  recovered: []
  /** Emitted when changed rules of the source have come into force. */
  rules: [event: RulesEvent]
  /**
   * Emitted when rules cannot be read or are rejected. The last valid rules stay in force. A repeated error is
   * emitted only once.
   */
  "rule-error": [error: RuleSourceError | InvalidRuleError]
  /**
   * Emitted when the rules may be out of date, because loading has failed for a long time. Emitted only once until a
   * load succeeds.
   */
  "rules-stale": [event: StaleEvent]
  /** Emitted when a full memory store evicted a counter that still had an effect. */
  evicted: [event: EvictionEvent]
  /**
   * Emitted when units could not be refunded in the background: after `refundWhen`, after a client disconnected, or
   * after a decision arrived too late. The units may stay taken until their window passes.
   */
  "refund-lost": [event: RefundLostEvent]
  /**
   * Emitted when other counters did not confirm the charge of units that this process has admitted. These are the
   * counters of another data center (`mirroredStore`) or the shared counters of a `writeBackStore`. The other
   * counters may admit the same units again.
   */
  "charges-lost": [event: ChargesLostEvent]
  /**
   * Emitted when permits have ended although their requests are still in progress, so that other requests may have
   * taken their place. Either this process was frozen for more than a third of `hold`, or the store did not respond for
   * as long. The permits count again with their next renewal. Emitted at most once a second for each rule.
   */
  "permits-lost": [event: PermitsLostEvent]
  /** Emitted for a problem that the app should fix, although requests are still decided. The same warning is logged. */
  warning: [warning: Warning]
  /** Emitted when the limiter is closed. This is the last event. */
  closed: []
}

/** The event for permits that ended although their requests are still in progress. */
export interface PermitsLostEvent {
  /** Name of the rule. */
  readonly policy: string
  /** Number of permits that ended. */
  readonly permits: number
  /** Why the latest renewal failed. Absent if the process itself was late. */
  readonly error?: StoreUnavailableError
}

/** The names of all events of a limiter. */
export const LIMITER_EVENTS: Readonly<Record<keyof LimiterEvents<unknown>, true>> = {
  decision: true,
  decided: true,
  "near-limit": true,
  "first-refusal": true,
  granted: true,
  corrected: true,
  "store-error": true,
  degraded: true,
  recovered: true,
  rules: true,
  "rule-error": true,
  "rules-stale": true,
  evicted: true,
  "refund-lost": true,
  "charges-lost": true,
  "permits-lost": true,
  warning: true,
  closed: true,
}

/** The current state of a limiter, for metrics and health checks. */
export interface LimiterStatus {
  /** The service whose rules and counters the limiter uses. */
  readonly service: string
  /** Number of undecided requests, which wait in `acquire` or because rules hold them. */
  readonly waiting: number
  /** Number of permits of rules with `concurrent` that requests of this process hold. */
  readonly inFlight: number
  /** The permits of each rule with `concurrent`, by the rule's name. Absent until such a rule has admitted a request. */
  readonly permits?: Readonly<Record<string, PermitCounts>>
  /** True if other processes may use the same counters. Absent if not, or if the store does not say so. */
  readonly isShared?: boolean
  /**
   * Number of the store's servers whose circuit breaker is open: normally 0. Absent if the store has no
   * circuit breakers, such as the memory store.
   */
  readonly openBreakers?: number
  /** Counts of the units that the store holds in leases. Absent if the store does not lease units. */
  readonly leases?: LeaseCounts
  /** The state of charges to other data centers, by data center. Absent without a `mirroredStore`. */
  readonly mirrors?: Readonly<Record<string, ChargeCounts>>
  /** The state of charges to the shared counters. Absent without a `writeBackStore`. */
  readonly writeBack?: ChargeCounts
}

/** How much a call requests. */
export interface AmountOptions {
  /**
   * Units to take instead of the option `cost`: 0 or a positive whole number. A request of cost 0 takes nothing and
   * is admitted.
   */
  readonly cost?: number | undefined
  /**
   * How many of each unit to take, overriding the option `units`: `{ tokens: 1_500 }`. `cost` is short for
   * `units.requests`.
   */
  readonly units?: Readonly<Record<string, number>> | undefined
}

/** The units that `acquire` or `run` requests, its priority, and the limits of its wait. */
export interface AcquireOptions extends AmountOptions {
  /**
   * The request's place in line, instead of the option `priority`: a whole number from -1,000 to 1,000. A higher
   * priority goes first, and requests of the same priority are served in order of arrival. Default: 0.
   */
  readonly priority?: number | undefined
  /**
   * A signal that ends the wait when it aborts. `acquire` then rejects with the signal's reason, and no units stay
   * taken.
   */
  readonly signal?: AbortSignal | undefined
  /** The longest wait in milliseconds. Default: unlimited. */
  readonly maxWaitMs?: number | undefined
  /**
   * Maximum number of requests in this process that wait for one counter, including this request. Applies to requests
   * of every priority. Default: 1,000.
   */
  readonly maxWaiting?: number | undefined
}

/** The units and rules of a `peek` or `explain` call. */
export interface PeekOptions extends AmountOptions {
  /**
   * Names of the only rules to check, even if their `match` does not apply to this request. The request then needs
   * only the client's fields. Default: the rules that `decide` would check.
   */
  readonly rules?: readonly string[] | undefined
}

/** The rules under which a client is reset, blocked, unblocked or granted units. */
export interface RuleSelection {
  /**
   * Names of rules, which then need not match the request. Default: all rules that count by client, but not rules for the
   * whole service. `grant` takes only rules with `per`, and `reset` takes rules with `concurrent` only if they are named.
   */
  readonly rules?: readonly string[] | undefined
}

/** The duration of a client's block, and the rules it applies to. */
export interface BlockOptions extends RuleSelection {
  /** Duration from now: milliseconds, or a string such as "1 hour"; at most 366 days. */
  readonly for: number | string
}

/**
 * The decision maker. `Request` is the type of the requests that the limiter decides. In an adapter this is the
 * framework's own request. Otherwise it is an object with any members of {@link RequestFacts}.
 */
export interface Limiter<Request = RequestFacts> extends Events<LimiterEvents<Request>> {
  /**
   * Takes the units under every rule atomically, or refuses the request and takes none.
   *
   * Never rejects because of the store or the rules. Rejects with {@link InvalidOptionError} for an invalid cost.
   * Also rejects if the request is not an object and no function in `fields` could read it. Rejects with
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
  decide(request: Request, options?: AmountOptions): Promise<Decision>
  /** Decides as `decide` does, but rejects with {@link RateLimitExceededError} when the request is refused. */
  enforce(request: Request, options?: AmountOptions): Promise<Decision>
  /**
   * Waits until the request is admitted under every rule, and takes the units. Within the process, requests that
   * share a counter are served by `priority`, and first come, first served within a priority. Requests do not
   * poll, with one exception: the first request in line for a permit asks the store again after 5 to 100 ms, because
   * another process may release one. The wait includes the delay of a leaky bucket.
   *
   * Rejects immediately with {@link RateLimitExceededError} if waiting is pointless. That is the case if the request
   * can never succeed or would wait longer than `maxWaitMs`, or if `maxWaiting` requests already wait. Rejects with
   * the signal's reason when the signal aborts, and with {@link ClosedError} when the limiter is closed. In all these
   * cases no units stay taken.
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
   * Acquires, calls `work` with the decision, and releases the permits of the decision when `work` has returned,
   * thrown or settled. Returns what `work` returns, and rejects with what it throws. Units of rates stay taken. `options`
   * are the options of `acquire`. Their `signal` ends only the wait, so pass it to the work as well.
   *
   * Rejects as `acquire` does, without calling `work`. Rejects with {@link InvalidOptionError} if `work` is not a
   * function. After the work, waits at most `storeTimeoutMs` until the store has confirmed the release, so that the next
   * `run` finds the permit. A release that fails or takes longer does not change the result.
   * @example
   * ```ts
   * import { createLimiter } from "@sluice/core"
   *
   * // Five calls at a time to somebody else's service: the sixth waits until one of them has ended.
   * const limiter = createLimiter({ rules: [{ name: "in-flight", field: "service", concurrent: 5 }] })
   * const answer = await limiter.run({}, async () => 6 * 7, { maxWaitMs: 5_000, priority: 1 })
   * answer // => 42
   * ```
   */
  run<Result>(
    request: Request,
    work: (decision: Decision) => Awaitable<Result>,
    options?: AcquireOptions,
  ): Promise<Result>
  /**
   * Takes as many units as are available, at most `units`. Each rule charges its own cost for a unit. The decision's
   * `cost` is the number of units granted. These units are taken immediately, under every rule or none. The request
   * is refused only if not a single unit is available, and then `retryAfterMs` is the wait for one unit. `units` is 0
   * or a positive whole number, and overrides the option `cost`, or the amount of the unit that `options` name.
   *
   * Other requests may take units after this call has read how many are available. The call then retries with fewer
   * units, a few times.
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
  takeUpTo(
    request: Request,
    units: number,
    options?: {
      /**
       * The unit of which to take as many as possible. Rules of other units take their full amount. Default: "requests".
       */
      readonly unit?: string | undefined
    },
  ): Promise<Decision>
  /**
   * Names a client by a rule and by the key under which the rule counts it, for tools that have no request. `key` is
   * the `partition` of a counter, such as in the event `decided`, also if it is a hash. Or it is the list of values of
   * the rule's fields, or of such a hash alone. `peek`, `usage`, `explain`, `reset`, `block`, `unblock` and `grant`
   * accept the result as the request, and apply to this rule only.
   *
   * These calls reject with {@link InvalidOptionError} for a rule that does not exist, and for values that do not fit
   * its fields. `peek` and `usage` also reject if the rule's limit, window or anchor is a function of the request, and
   * `explain` then returns a counter with the limit 0. For a key that is a hash, the lists of the rule do not apply,
   * because they contain values.
   * @example
   * ```ts
   * import { createLimiter } from "@sluice/core"
   *
   * const limiter = createLimiter({ name: "per-user", field: "header:x-user", limit: 10, window: "1 minute" })
   *
   * await limiter.decide({ headers: { "x-user": "ada" } })
   * await limiter.peek(limiter.client("per-user", ["ada"])) // remaining: 9
   * await limiter.block(limiter.client("per-user", ["ada"]), { for: "1 hour" })
   * ```
   */
  client(rule: string, key: string | readonly string[]): RequestFacts
  /**
   * Returns whether `decide` would admit the request, and the remaining units before it. Takes nothing, so `cost` is
   * 0. Plain facts are accepted as the request, for tests and tools.
   */
  peek(request: Request | RequestFacts, options?: PeekOptions): Promise<Decision>
  /**
   * Returns what the client has used in the current period of each rule with `per` that applies to the request, in the
   * order of the rules. Takes nothing. Other rules are left out. The array is empty if no such rule applies.
   *
   * Rejects with {@link StoreUnavailableError} when the store fails, because the counts of this process alone would be too
   * low. Rejects with {@link InvalidOptionError} if `rules` names a rule without `per`, and as `peek` does.
   * @example
   * ```ts
   * import { createLimiter } from "@sluice/core"
   *
   * const limiter = createLimiter({ name: "monthly", field: "header:x-user", limit: 1_000, per: "month", timeZone: "UTC" })
   * const request = { headers: { "x-user": "ada" } }
   *
   * await limiter.decide(request, { cost: 30 })
   * const [monthly] = await limiter.usage(request)
   * monthly?.used // => 30
   * monthly?.remaining // => 970
   * ```
   */
  usage(request: Request | RequestFacts, options?: RuleSelection): Promise<readonly RuleUsage[]>
  /**
   * Returns an explanation for each rule, in the order of the rules. An explanation contains the counter and the cost
   * with which `decide` would check the request, or the reason why the rule does not apply. The call does not use the
   * store, so it takes nothing. The array is empty if the request is not counted, because of `skip` or a disabled
   * limiter. Rejects as `peek` does.
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
   * Refunds the units of a decision to the window in which they were taken, so the call is a no-op when that window
   * has passed. Also releases its permits. Only the first call has an effect. The decision must be the object that this
   * limiter returned.
   * Rejects with {@link InvalidOptionError} for a copy, such as one that went through JSON, for another limiter's
   * decision, and for any other object.
   *
   * Waits for the store for at most `storeTimeoutMs`, as a decision does, and rejects with
   * {@link StoreUnavailableError} when the store fails. If the error's `outcome` is "not-applied", nothing was
   * refunded and you can call `refund` again. If the outcome is "unknown", the units may have been refunded, and
   * another call does nothing.
   */
  refund(decision: Decision): Promise<void>
  /**
   * Releases the permits that a decision holds under rules with `concurrent`, because its request has ended. Only the
   * first call has an effect. Units of other rules stay taken, and `settle` still corrects them. `limiter.run` and the
   * middleware release by themselves.
   *
   * Accepts the same decisions as `refund`. Never rejects because of the store: permits that cannot be released end by
   * themselves within the rule's `hold`, and the event `refund-lost` is emitted. A decision that is no longer reachable
   * loses its permits within twice that time.
   * @example
   * ```ts
   * import { createLimiter } from "@sluice/core"
   *
   * const limiter = createLimiter({ concurrent: 5, field: "service" })
   * const decision = await limiter.enforce({}) // 4 more may run
   * try {
   *   // the work of the request
   * } finally {
   *   await limiter.release(decision)
   * }
   * ```
   */
  release(decision: Decision): Promise<void>
  /**
   * Corrects the units that a decision has taken to the units that were used. A number means requests. An object names
   * units, such as `{ tokens: 1_234 }`, and all other units stay as they were taken. Amounts are 0 or positive whole
   * numbers. Unused units are refunded. Missing units are charged, even beyond the limit, but at most a year's quota. The
   * correction applies to the window in which the units were taken, so the call is a no-op when that window has passed. A
   * bucket is charged in full until the time that it needs to refill completely has passed.
   *
   * Only the first call to `settle` or `refund` has an effect. For a refused decision, the call is a no-op. `settle`
   * accepts the same decisions as `refund`, and rejects as `refund` does.
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
  settle(decision: Decision, used: number | Readonly<Record<string, number>>): Promise<void>
  /**
   * Moves what an admitted decision took into a string, with which any process with the same rules and store can settle
   * it within ten minutes. The decision can then no longer be settled, refunded or released. This process no longer
   * renews its permits. Throws {@link InvalidOptionError} for a decision that was refused, or of which nothing is left.
   * @example
   * ```ts
   * import { createLimiter } from "@sluice/core"
   *
   * const limiter = createLimiter({ limit: 1_000, window: "1 minute", field: "service" })
   * const { text } = limiter.reserve(await limiter.enforce({}, { cost: 200 })) // 800 are left
   *
   * // Later, also in another process:
   * await limiter.settleReservation(text, { used: { requests: 350 } }) // true: 650 are left
   * await limiter.settleReservation(text, { used: { requests: 350 } }) // false: it was settled before
   * ```
   */
  reserve(decision: Decision): Reservation
  /**
   * Corrects the units of a reservation to the used units and releases its permits, because its request has ended.
   * Returns false if it was settled before, by any process. Counters of rules that are gone, or that count differently
   * now, are left out. With a `mirroredStore`, settle in the data center that has decided.
   *
   * Rejects with {@link InvalidOptionError} for a text that is not a reservation of this service, or that is more than
   * ten minutes old. Rejects with {@link StoreUnavailableError} as `settle` does. A process that dies during the call
   * leaves the units as they were taken.
   */
  settleReservation(
    text: string,
    options?: {
      /** The used units: `{ tokens: 1_234 }`. Units that are not named stay as they were taken. Default: none. */
      readonly used?: Readonly<Record<string, number>> | undefined
      /** True if all units are refunded, because the request was not sent after all. Default: false. */
      readonly refund?: boolean | undefined
    },
  ): Promise<boolean>
  /**
   * Renews the permits of a reservation, because its request is still in progress, and returns its new text. The new
   * text is accepted for another ten minutes. Stop renewing before you settle: a renewal at the same time may keep the
   * permits for up to `hold`. Rejects as `settleReservation` does, and with {@link InvalidOptionError}
   * if the reservation was settled before.
   */
  renewReservation(text: string): Promise<Reservation>
  /**
   * Returns this limiter's decision on a request that passed one of its adapters, even if another limiter's decision
   * is stricter and binds the request. Returns undefined if this limiter has not decided the request. If the limiter
   * is mounted twice, returns its last decision.
   */
  decisionOn(request: Request & object): Decision | undefined
  /**
   * Resets the counters of this request's client under every rule, including rules of routes, and ends any block of
   * the client, and the units that were granted for the current period. A counter of the whole service is reset only
   * if its rule is named, and so are permits, because requests in progress soon count again. If a rule's `window` is a
   * function, the current window is reset, and up to 100 windows that the function has returned in this process. Waits
   * for the store as long as a decision does, and rejects with {@link StoreUnavailableError} when it fails. The call
   * can be repeated safely.
   */
  reset(request: Request | RequestFacts, options?: RuleSelection): Promise<void>
  /**
   * Blocks this request's client. Rules refuse the client until the time has passed, with `refusal: "blocked"` and
   * with the remaining time as `retryAfterMs`. A longer block stays in force. Requests of cost 0 and shadow rules are
   * not affected.
   *
   * The block is saved in the store. This limiter applies the block immediately, and other processes apply it within
   * a second of their next decision. Waits for the store as `reset` does, and rejects with
   * {@link StoreUnavailableError} when it fails. The call can be repeated safely.
   *
   * Rejects with {@link InvalidOptionError} if no rule could refuse the client. That is the case if the request has
   * neither the rule's field nor an address, the client is on an allow list, or the client's limit is Infinity.
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
   * Ends a block of this request's client, including a block by a penalty, but does not reset its counts. If the
   * blocks of a penalty grow, the next one has the first length again. Another process may cache a refusal for up to
   * the store's `denyCacheMs`. Rejects as `reset` does.
   */
  unblock(request: Request | RequestFacts, options?: RuleSelection): Promise<void>
  /**
   * Grants this request's client units in addition to its limit, under rules with `per`, for the current calendar period.
   * A negative number takes granted units back, at most all of them. The units are saved in the counter in the store, so
   * all processes admit them from their next read on. Another process may cache a refusal for up to the store's
   * `denyCacheMs`. `PolicyCheck.granted` shows the units. They end with the period, and with `reset`.
   *
   * Waits for the store as `reset` does, and rejects with {@link StoreUnavailableError} when it fails. **A second call grants
   * the units twice.** If the error's `outcome` is "unknown", compare `granted` before another call.
   *
   * Rejects with {@link InvalidOptionError} if no rule with `per` limits the client. Also rejects for a client of
   * `limiter.client`, if the rule's anchor is a function.
   * @example
   * ```ts
   * import { createLimiter } from "@sluice/core"
   *
   * const limiter = createLimiter({ name: "monthly", limit: 1_000, per: "month" })
   * await limiter.grant({ remoteAddress: "192.0.2.7" }, 5_000) // until the end of the month
   * ```
   */
  grant(request: Request | RequestFacts, units: number, options?: RuleSelection): Promise<void>
  /**
   * Resolves when rules are loaded. Rejects with the reason if loading fails; with `retry`, a failed load does not
   * end the wait. Aborting `signal` ends the wait. The call keeps the process alive while it waits, which a limiter
   * otherwise does not.
   */
  ready(options?: ReadyOptions): Promise<void>
  /** Resolves when rules that were loaded after the call are in force. Rejects with the reason if loading fails. */
  refresh(options?: SignalOption): Promise<void>
  /** Version, age and problems of the rules in force. Rules that are passed as an array never age. */
  readonly rules: RulesStatus
  /** The current state of the limiter. Reading the status does not call the store. */
  readonly status: LimiterStatus
  /**
   * Closes the objects that the limiter created: its rules, and its store unless the app passed one. Later calls
   * reject.
   */
  close(): Promise<void>
}
