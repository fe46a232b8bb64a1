import { algorithmOf } from "../../algorithms/kinds.ts"
import type { Decision, PolicyCheck } from "../../decision/decision.ts"
import type { Ask, Look } from "../../decision/rule-check.ts"

/** For how long a refusal is believed that may end at any time: the store is gone, or there is no capacity to spare. */
const PASSING_MS = 1_000

let made = 0

/** What a waiting request asked the store for last, and for how long a refusal of that is believed. */
export class Attempt {
  readonly asks: readonly Ask[]
  /** The order in which the store was asked. */
  readonly number: number = made++
  /** When the store answered, in its own time. */
  #answeredMs = 0

  /** The number of the next attempt. */
  static get made(): number {
    return made
  }

  constructor(asks: readonly Ask[]) {
    this.asks = asks
  }

  /** Sees the store's answer. */
  readonly look: Look = (_asked, { nowMs }) => {
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
  refusedBy({ checks }: Decision, awaited: readonly Ask[]): Ask | undefined {
    let longestMs = 0
    let by: Ask | undefined
    for (const check of checks) {
      const waitMs = this.#believedOf(check)
      if (check.allowed || waitMs <= longestMs) continue
      const ask = awaited.find((each) => each.policy.name === check.policy)
      if (ask === undefined) continue
      longestMs = waitMs
      by = ask
    }
    return by
  }

  /**
   * Returns how long one refusal is believed: its retry time. Under elastic throttling that time is about the limit, and there
   * may be capacity to spare, or room below the ceiling, before.
   */
  #believedOf({ policy, refusal, retryAfterMs, counts }: PolicyCheck): number {
    const ask = this.asks.find((each) => each.policy.name === policy && each.policyNow !== undefined)
    if (refusal !== "quota" || ask === undefined) return retryAfterMs
    // Held to the limit only as long as there is no capacity to spare.
    if (ask.policy.extra === undefined) return Math.min(retryAfterMs, PASSING_MS)
    if (counts === undefined) return retryAfterMs
    const wider = algorithmOf(ask.policy).retryAfterMs(counts, ask.policy, ask.cost, this.#answeredMs)
    return Math.min(retryAfterMs, wider)
  }
}
