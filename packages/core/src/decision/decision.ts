import type { CounterState } from "../algorithms/algorithm.ts"
import type { AlgorithmName } from "../algorithms/kinds.ts"
import { SluiceError } from "../ground/errors.ts"

/** The reason for a refusal. */
export type Refusal =
  /** The limit has been reached. The request can be retried after `retryAfterMs`. */
  | "quota"
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
   * The service fails closed. The store is unavailable and the rule's `onStoreFailure` is "deny", or no rules have been
   * loaded yet and `onRulesMissing` is "deny", or the rule's `limit` function has failed before it ever returned a limit.
   */
  | "store-failure"
  /** The request fits here, but `decideAll` took nothing, because another request of the group was refused. */
  | "group"

/** One rule's own verdict within a decision. */
export interface PolicyCheck {
  /** Name of the rule. */
  readonly policy: string
  /** How the rule counts. */
  readonly algorithm: AlgorithmName
  /** Quota units per window, as shown to clients. Units that a throttle admits above the limit are not included. */
  readonly limit: number
  /** Length of the window in milliseconds. */
  readonly windowMs: number
  /**
   * Units that would still be admitted after this request, or, in a peek, before it. 0 if the store was not asked.
   * Undefined if the store did not read this rule's counter because another rule had already refused, as happens in a
   * Redis Cluster or while a leased rule is held off. Then `allowed` only means that this rule has not refused.
   */
  readonly remaining: number | undefined
  /** Units that the request needs under this rule. */
  readonly cost: number
  /** Whether this rule by itself admits the request. */
  readonly allowed: boolean
  /** Milliseconds to wait: 0 if this rule admits the request, Infinity if it never will. */
  readonly retryAfterMs: number
  /**
   * Milliseconds until one more unit than `remaining` would be admitted, if no other request comes. 0 if all units are
   * available.
   */
  readonly nextUnitAfterMs: number
  /** Milliseconds until all units (the limit or the burst) are available again, if no other request comes. */
  readonly resetAfterMs: number
  /** Milliseconds for which this rule delays the request before it proceeds. 0 except for a leaky bucket. */
  readonly delayMs: number
  /** Whether the request was admitted above the limit, by soft or elastic throttling. */
  readonly overLimit: boolean
  /** Whether this is a shadow rule: it reports, but never refuses. */
  readonly shadow: boolean
  /** Why this rule refuses; absent if it admits the request. */
  readonly refusal?: Refusal
  /** The message for a client that this rule refuses. */
  readonly rejectionMessage?: string
  /**
   * The counts behind the verdict; absent if the store was not asked. When Redis grants from a strict window, `parts`
   * may be an outline instead of the count of each part. `current`, `previous` and all other members are exact.
   */
  readonly counts?: CounterState
  /**
   * Age of the shared counts in milliseconds: 0 if the shared store was asked for this request. Above 0, a lease granted
   * the request, a store that writes back decided it, or a refusal was repeated. Other processes may have taken units
   * since.
   */
  readonly ageMs: number
  /** The missing field, with `refusal: "missing-field"`. */
  readonly field?: string
}

/**
 * The result for one request: the verdict of its strictest rule, and of each rule by itself.
 *
 * For example, 6 units of a limit of 10 are taken. The seventh unit is then admitted with 3 remaining. Once 10
 * are taken, the next request is refused with 0 remaining and a time to wait.
 */
export interface Decision {
  /** Whether the request may proceed, after `delayMs`. */
  readonly allowed: boolean
  /**
   * Name of the binding rule, "" if no rule applies. If the request is refused, it is the rule with the longest wait.
   * If it is admitted, it is the rule that can admit the fewest more requests of this cost.
   */
  readonly policy: string
  /** Quota units per window under the binding rule; Infinity when no rule applies. */
  readonly limit: number
  /**
   * Units left under the binding rule. Infinity if no rule applies. 0 if the store was not asked (`refusal` "cost" or
   * "denied").
   */
  readonly remaining: number
  /** Units taken from the binding rule: 0 when refused. */
  readonly cost: number
  /**
   * Milliseconds to wait: 0 if the request was admitted, Infinity if it can never succeed. If no other request comes,
   * it succeeds after exactly this wait, and fails one millisecond earlier.
   *
   * There are two exceptions. While the store is unavailable, the wait is a guess. Under elastic throttling, spare
   * capacity may admit the request earlier, or may be gone by the time another rule has room again.
   */
  readonly retryAfterMs: number
  /** Milliseconds until all units (the limit or the burst) are available again, if no other request comes. */
  readonly resetAfterMs: number
  /** Milliseconds to delay the request before it proceeds. This is the longest delay of its rules. */
  readonly delayMs: number
  /** Whether the request was admitted above the limit of any rule, by soft or elastic throttling. */
  readonly overLimit: boolean
  /** Whether the decision was made without the shared store, because the store did not respond. */
  readonly degraded: boolean
  /** Why the request was refused; absent if it was admitted. */
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

/** Thrown by `enforce` and `acquire` when the request is refused. `decision` holds the rule and the time to wait. */
export class RateLimitExceededError extends SluiceError {
  readonly code = "SLUICE_RATE_LIMIT_EXCEEDED"
  /** The refused decision, for which nothing was taken. */
  readonly decision: Decision

  /** Creates the error. Its message names the rule, the reason and the wait. */
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
