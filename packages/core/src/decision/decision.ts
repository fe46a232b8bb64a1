import type { CounterState } from "../algorithms/algorithm.ts"
import type { AlgorithmName } from "../algorithms/kinds.ts"
import { SluiceError } from "../ground/errors.ts"

/** The reason for a refusal. */
export type Refusal =
  /** The limit has been reached. The request can be retried after `retryAfterMs`. */
  | "quota"
  /**
   * As many requests are in progress as the rule allows at a time. When one of them ends is unknown, so `retryAfterMs` is
   * a hint.
   */
  | "in-flight"
  /** The client was refused too often, so the rule's penalty blocks it until `retryAfterMs` have passed. */
  | "penalty"
  /** The client is blocked by `limiter.block` until `retryAfterMs` have passed. */
  | "blocked"
  /** The request costs more than a limit can ever grant, so the same request never succeeds. */
  | "cost"
  /** The client is on the rule's `deny` list. */
  | "denied"
  /** A field that the rule needs is missing, and the rule's `onMissing` is "deny". */
  | "missing-field"
  /**
   * The service fails closed. The store is unavailable and the rule's `onStoreFailure` is "deny", or no rules have
   * been loaded yet and `onRulesMissing` is "deny". Another cause is a `limit` function that has failed before it
   * ever returned a limit.
   */
  | "store-failure"
  /** The request fits here, but `decideAll` took no units, because another request of the group was refused. */
  | "group"

/** One rule's own verdict within a decision. */
export interface PolicyCheck {
  /** Name of the rule. */
  readonly policy: string
  /** The unit that the rule counts: "requests", or what the rule's `counts` names. */
  readonly unit: string
  /** How the rule counts: "in-flight" for a rule with `concurrent`. */
  readonly algorithm: AlgorithmName | "in-flight"
  /**
   * Quota units per window, or permits at a time, as shown to clients. Includes `granted`. Units that a throttle admits
   * above the limit are not included.
   */
  readonly limit: number
  /** Units that `grant` has added to the limit in the current calendar period. Absent if there are none. */
  readonly granted?: number
  /**
   * Length of the window in milliseconds. For a rule with `per`, the length of the current period. For a rule with
   * `concurrent`, its `hold`.
   */
  readonly windowMs: number
  /** The calendar period that is the window. Absent if the rule has no `per`. */
  readonly per?: "day" | "week" | "month" | "year"
  /**
   * Units that would still be admitted after this request or, in a peek, before it. 0 if the store was not called.
   * Undefined if the store did not read this rule's counter because another rule had already refused. This happens in
   * a Redis Cluster, or while a leased rule is held off. In that case, `allowed` only means that this rule has not
   * refused.
   */
  readonly remaining: number | undefined
  /** Units that the request needs under this rule. */
  readonly cost: number
  /**
   * Units that stay taken although the request was refused, because Fastify had decided this rule in an earlier step.
   * Absent otherwise.
   */
  readonly taken?: number
  /** Whether this rule by itself admits the request. */
  readonly allowed: boolean
  /** Milliseconds to wait: 0 if this rule admits the request, Infinity if this rule can never admit it. */
  readonly retryAfterMs: number
  /**
   * Milliseconds until one more unit than `remaining` would be admitted, if no other request arrives. 0 if all units
   * are available. Under a rule with `per`, always the milliseconds until the period ends.
   */
  readonly nextUnitAfterMs: number
  /** Milliseconds until all units (the limit or the burst) are available again, if no other request arrives. */
  readonly resetAfterMs: number
  /** Milliseconds for which this rule delays the request before it proceeds. 0 except for a leaky bucket. */
  readonly delayMs: number
  /** Whether the request was admitted above the limit, by soft or elastic throttling. */
  readonly overLimit: boolean
  /** Whether this is a shadow rule, which reports but never refuses. */
  readonly shadow: boolean
  /** The reason why this rule refuses. Absent if the rule admits the request. */
  readonly refusal?: Refusal
  /** The message for a client that this rule refuses. */
  readonly rejectionMessage?: string
  /**
   * The counts behind the verdict. Absent if the store was not called. When Redis grants from a strict window,
   * `parts` may be an outline instead of the count of each part. `current`, `previous` and all other members are
   * exact.
   */
  readonly counts?: CounterState
  /**
   * Age of the shared counts in milliseconds. 0 if the shared store was called for this request. Above 0 if a lease
   * granted the request, a store that writes back decided it, or a refusal was repeated. In these cases, other
   * processes may have taken units since.
   */
  readonly ageMs: number
  /** The missing field, if `refusal` is "missing-field". */
  readonly field?: string
}

/**
 * The result for one request. The result contains the verdict of the strictest rule, and the verdict of each rule by
 * itself.
 *
 * For example, 6 units of a limit of 10 are taken. The seventh unit is then admitted with 3 remaining. Once 10 units
 * are taken, the next request is refused with 0 remaining and a time to wait.
 */
export interface Decision {
  /** Whether the request may proceed, after `delayMs`. */
  readonly allowed: boolean
  /**
   * Name of the binding rule, or "" if no rule applies. For a refused request, this is the rule with the longest
   * wait. For an admitted request, this is the rule that can admit the fewest further requests of this cost.
   */
  readonly policy: string
  /** Quota units per window under the binding rule, or Infinity if no rule applies. */
  readonly limit: number
  /**
   * Units left under the binding rule. Infinity if no rule applies. 0 if the store was not called (`refusal` "cost"
   * or "denied").
   */
  readonly remaining: number
  /** Units taken from the binding rule: 0 when refused. */
  readonly cost: number
  /**
   * Milliseconds to wait: 0 if the request was admitted, Infinity if it can never succeed. If no other request
   * arrives, the request succeeds after exactly this wait, and fails one millisecond earlier.
   *
   * There are three exceptions. While the store is unavailable, the wait is a guess. If the refusal is "in-flight", the
   * wait is a hint, because it depends on when other requests end. Under elastic throttling, spare
   * capacity may admit the request earlier, or may be used up by the time another rule has units again.
   */
  readonly retryAfterMs: number
  /** Milliseconds until all units (the limit or the burst) are available again, if no other request arrives. */
  readonly resetAfterMs: number
  /** Milliseconds to delay the request before it proceeds. The longest delay of the rules that apply to the request. */
  readonly delayMs: number
  /** Whether the request was admitted above the limit of any rule, by soft or elastic throttling. */
  readonly overLimit: boolean
  /** Whether the decision was made without the shared store, because the store did not respond. */
  readonly degraded: boolean
  /** The reason why the request was refused. Absent if the request was admitted. */
  readonly refusal?: Refusal
  /**
   * The binding rule's message for a client that it refuses. Absent if the request was admitted, and for a rule without
   * a message.
   */
  readonly rejectionMessage?: string
  /** Names of shadow rules that would have refused. */
  readonly shadowed: readonly string[]
  /** The verdict of each rule, shadow rules included, in the order of the rules. */
  readonly checks: readonly PolicyCheck[]
}

/** Thrown by `enforce` and `acquire` when the request is refused. `decision` contains the rule and the time to wait. */
export class RateLimitExceededError extends SluiceError {
  readonly code = "SLUICE_RATE_LIMIT_EXCEEDED"
  /** The refused decision, for which no units were taken. */
  readonly decision: Decision

  /** Creates the error. The message names the rule, the reason and the wait. */
  constructor(decision: Decision) {
    const wait = Number.isFinite(decision.retryAfterMs)
      ? `retry after ${decision.retryAfterMs} ms`
      : "this request can never succeed"
    const who =
      decision.policy === ""
        ? "Refused, because no rules have been loaded yet"
        : `Refused by rate limit "${decision.policy}" (${decision.refusal})`
    super(`${who}: ${wait}.`)
    this.decision = decision
  }
}
