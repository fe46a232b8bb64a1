import { algorithmOf } from "../../algorithms/kinds.ts"
import type { Decision, PolicyCheck } from "../../decision/decision.ts"
import type { OnStoreAnswer, RuleCheck } from "../../decision/rule-check.ts"

/** For how long a refusal is believed that may end at any time: the store is gone, or there is no capacity to spare. */
const PASSING_MS = 1_000

let made = 0

/** What a waiting request asked the store for last, and for how long a refusal of that is believed. */
export class Attempt {
  readonly ruleChecks: readonly RuleCheck[]
  /** The order in which the store was asked. */
  readonly number: number = made++
  /** When the store answered, in its own time. */
  #answeredMs = 0

  /** The number of the next attempt. */
  static get made(): number {
    return made
  }

  constructor(ruleChecks: readonly RuleCheck[]) {
    this.ruleChecks = ruleChecks
  }

  /** Sees the store's answer. */
  readonly onAnswer: OnStoreAnswer = (_asked, { nowMs }) => {
    this.#answeredMs = nowMs
  }

  /** Returns for how many milliseconds the refusal is believed: asking again before that is pointless. */
  believedMs({ degraded, retryAfterMs, checks }: Decision): number {
    if (degraded) return Math.min(retryAfterMs, PASSING_MS)
    let longestMs = 0
    for (const check of checks) {
      if (!check.allowed && !check.shadow) longestMs = Math.max(longestMs, this.#believedOf(check))
    }
    return longestMs
  }

  /** Returns the one of the `awaited` asks whose refusal is believed for longest. */
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
   * Returns how long one refusal is believed: its retry time. Under elastic throttling that time is about the limit, and there
   * may be capacity to spare, or room below the ceiling, before.
   */
  #believedOf({ policy, refusal, retryAfterMs, counts }: PolicyCheck): number {
    const ruleCheck = this.ruleChecks.find(
      (each) => each.policy.name === policy && each.policyNow !== undefined,
    )
    if (refusal !== "quota" || ruleCheck === undefined) return retryAfterMs
    // Held to the limit only as long as there is no capacity to spare.
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
