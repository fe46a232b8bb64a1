import type { CounterState } from "../algorithms/algorithm.ts"
import { SluiceError } from "../ground/errors.ts"

/** Why a request was refused. */
export type Refusal =
  /** The limit has been reached: it can be asked again after `retryAfterMs`. */
  | "quota"
  /** It was refused too often, so the rule's penalty blocks it until `retryAfterMs` have passed. */
  | "penalty"
  /** The client is blocked by `limiter.block` until `retryAfterMs` have passed. */
  | "blocked"
  /** It costs more than a limit allows at all: the same request never succeeds. */
  | "cost"
  /** The rule's `deny` list names the client. */
  | "denied"
  /** A field that the rule needs is missing, and the rule's `onMissing` is "deny". */
  | "missing-field"
  /**
   * The service fails closed: the store is gone and the rule's `onStoreFailure` is "deny", or no rules have been loaded yet and
   * `onRulesMissing` is "deny".
   */
  | "store-failure"

/** One rule's own verdict within a decision. */
export interface PolicyCheck {
  /** Name of the rule. */
  readonly policy: string
  /** Quota units per window, as told to clients: without what a throttle admits above it. */
  readonly limit: number
  /** Length of the window in milliseconds. */
  readonly windowMs: number
  /**
   * Units that would be admitted after this request, or of a peek before it; 0 where the store was not asked. Undefined if
   * the store did not read this rule's counter, because another rule had refused already, as in a Redis Cluster: then
   * `allowed` only says that this rule has not refused.
   */
  readonly remaining: number | undefined
  /** Units that this request asked of this rule. */
  readonly cost: number
  /** Whether this rule by itself admits the request. */
  readonly allowed: boolean
  /** Milliseconds to wait: 0 when this rule admits it; Infinity when it never will. */
  readonly retryAfterMs: number
  /** Milliseconds until one more unit than `remaining` would be admitted, if nobody asks; 0 when there is nothing to come back. */
  readonly nextUnitAfterMs: number
  /** Milliseconds until all units are there again, as many as the limit or the burst, if nobody asks. */
  readonly resetAfterMs: number
  /** Milliseconds that this rule holds the request before it goes on: 0 for all but a leaky bucket. */
  readonly delayMs: number
  /** Whether it was admitted above the limit, by soft or elastic throttling. */
  readonly overLimit: boolean
  /** Whether this rule only reports: it refuses nobody. */
  readonly shadow: boolean
  /** Why this rule refuses; absent when it admits. */
  readonly refusal?: Refusal
  /** What the client is told when this rule refuses. */
  readonly rejectionMessage?: string
  /**
   * The counts behind the verdict, absent where the store was not asked. When Redis grants from a strict window, `parts`
   * may be an outline, not the count of each part; `current`, `previous` and all else here are exact.
   */
  readonly counts?: CounterState
  /** The field that is missing, with `refusal: "missing-field"`. */
  readonly field?: string
}

/**
 * The answer to one request: the strictest of its rules, and each rule by itself. Of limit 10 with 6 units taken, the seventh
 * is admitted with 3 remaining; once 10 are taken the next one is refused with 0 remaining and a time to wait.
 */
export interface Decision {
  /** Whether the request may go on, after `delayMs`. */
  readonly allowed: boolean
  /**
   * The rule that binds: refused, the one with the longest wait; admitted, the one that fits the fewest more requests
   * like this. "" when no rule applies.
   */
  readonly policy: string
  /** Quota units per window under the binding rule; Infinity when no rule applies. */
  readonly limit: number
  /** Units left under the binding rule; Infinity when no rule applies, 0 where the store was not asked (`refusal` "cost" or "denied"). */
  readonly remaining: number
  /** Units taken from the binding rule: 0 when refused. */
  readonly cost: number
  /**
   * Milliseconds to wait: 0 when admitted; Infinity when it can never succeed. Waiting exactly this long suffices if nobody
   * else came, and a millisecond less does not; but for a guess while the store is gone, and under elastic throttling, where
   * there may be capacity to spare before that, or none any more once another rule has room again.
   */
  readonly retryAfterMs: number
  /** Milliseconds until all units are there again, as many as the limit or the burst, if nobody asks. */
  readonly resetAfterMs: number
  /** Milliseconds to hold the request before it goes on: the longest of its rules' delays. */
  readonly delayMs: number
  /** Whether it was admitted above the limit of any rule, by soft or elastic throttling. */
  readonly overLimit: boolean
  /** Whether it was decided without the shared store, which did not answer. */
  readonly degraded: boolean
  /** Why it was refused; absent when admitted. */
  readonly refusal?: Refusal
  /** What the binding rule tells a client that it refuses; absent when admitted, and where the rule has no message. */
  readonly rejectionMessage?: string
  /** Names of shadow rules that would have refused. */
  readonly shadowed: readonly string[]
  /** Each rule by itself, shadow rules too, in the order of the rules. */
  readonly checks: readonly PolicyCheck[]
}

/** Thrown by `enforce` when the request is refused, and by `acquire`; `decision` says by which rule and for how long. */
export class RateLimitExceededError extends SluiceError {
  readonly code = "SLUICE_RATE_LIMIT_EXCEEDED"
  /** The refusal: nothing was taken. */
  readonly decision: Decision

  /** The message names the rule, the refusal and the wait. */
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
