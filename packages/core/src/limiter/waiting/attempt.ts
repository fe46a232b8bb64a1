import { algorithmOf } from "../../algorithms/kinds.ts"
import type { Decision, PolicyCheck } from "../../decision/decision.ts"
import type { OnStoreAnswer, RuleCheck } from "../../decision/rule-check.ts"

/**
 * How long a refusal is trusted that may end at any time, in milliseconds. That is the case while the store is
 * unavailable or there is no spare capacity.
 */
const PASSING_MS = 1_000

let made = 0

/** The latest store call of a waiting request. It determines how long a refusal is trusted. */
export class Attempt {
  readonly ruleChecks: readonly RuleCheck[]
  /** The order in which requests asked the store. */
  readonly number: number = made++
  /** When the store answered, by its own clock. */
  #answeredMs = 0

  /** The number of the next attempt. */
  static get made(): number {
    return made
  }

  constructor(ruleChecks: readonly RuleCheck[]) {
    this.ruleChecks = ruleChecks
  }

  /** Records the time of the store's answer. */
  readonly onAnswer: OnStoreAnswer = (_asked, { nowMs }) => {
    this.#answeredMs = nowMs
  }

  /** Returns for how many milliseconds the refusal is trusted. Asking again before that is pointless. */
  believedMs({ degraded, retryAfterMs, checks }: Decision): number {
    if (degraded) return Math.min(retryAfterMs, PASSING_MS)
    let longestMs = 0
    for (const check of checks) {
      if (!check.allowed && !check.shadow) longestMs = Math.max(longestMs, this.#believedOf(check))
    }
    return longestMs
  }

  /** Returns the rule check in `awaited` whose refusal is trusted for the longest time. */
  refusedBy({ checks }: Decision, awaited: readonly RuleCheck[]): RuleCheck | undefined {
    let longestMs = 0
    let by: RuleCheck | undefined
    for (const check of checks) {
      const waitMs = this.#believedOf(check)
      if (check.allowed || waitMs <= longestMs) continue
      const ruleCheck = awaited.find((each) => each.policy.name === check.policy)
      if (ruleCheck === undefined) continue
      longestMs = waitMs
      by = ruleCheck
    }
    return by
  }

  /**
   * Returns how long one refusal is trusted: its retry time. Under elastic throttling, the retry time refers to the
   * limit. Spare capacity, or room below the ceiling, may admit the request earlier.
   */
  #believedOf({ policy, refusal, retryAfterMs, counts }: PolicyCheck): number {
    const ruleCheck = this.ruleChecks.find(
      (each) => each.policy.name === policy && each.policyNow !== undefined,
    )
    if (refusal !== "quota" || ruleCheck === undefined) return retryAfterMs
    // The limit applies only as long as there is no spare capacity.
    if (ruleCheck.policy.extra === undefined) return Math.min(retryAfterMs, PASSING_MS)
    if (counts === undefined) return retryAfterMs
    const wider = algorithmOf(ruleCheck.policy).retryAfterMs(
      counts,
      ruleCheck.policy,
      ruleCheck.cost,
      this.#answeredMs,
    )
    return Math.min(retryAfterMs, wider)
  }
}
