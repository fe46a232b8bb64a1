import { algorithmOf } from "../../algorithms/kinds.ts"
import type { Decision, PolicyCheck } from "../../decision/decision.ts"
import { countRefusals } from "../../decision/penalties.ts"
import type { Ask, Look } from "../../decision/rule-check.ts"
import type { CounterKey } from "../../stores/store.ts"
import { isSame } from "./counter.ts"

/** How long a refusal is believed that may be out of date at any time: the store is gone, or there is no capacity to spare. */
const PASSING_MS = 1_000

let made = 0

/** What one who waits has asked for last, and how far the refusal of that is believed. */
export class Tried {
  readonly asks: readonly Ask[]
  /** The order in which the store was asked. */
  readonly number: number = made++
  /** When a store has answered, by its own time. */
  #answeredMs = 0

  /** The number of the next one. */
  static get made(): number {
    return made
  }

  constructor(asks: readonly Ask[]) {
    this.asks = asks
  }

  /** Sees the answer. */
  readonly look: Look = (_asked, { nowMs }) => {
    this.#answeredMs = nowMs
  }

  /**
   * Whether it may be admitted when what another has tried, and was granted in vain, is back in a counter: if those units
   * were taken already when it was decided, or are enough for it, so that there were more by then.
   */
  isHelpedBy(other: Tried, counter: CounterKey): boolean {
    // Where refusals count it looks first and takes afterwards, and the other one may have gone in between.
    if (this.number > other.number || countRefusals(this.asks)) return true
    return this.#costOf(counter) <= other.#costOf(counter)
  }

  #costOf(counter: CounterKey): number {
    return this.asks.find((ask) => isSame(ask, counter))?.cost ?? 0
  }

  /** For how many milliseconds the refusal is believed, which is until it is worth while to ask again. */
  believedMs({ degraded, retryAfterMs, checks }: Decision): number {
    if (degraded) return Math.min(retryAfterMs, PASSING_MS)
    let longestMs = 0
    for (const check of checks) {
      if (!check.allowed && !check.shadow) longestMs = Math.max(longestMs, this.#believedOf(check))
    }
    return longestMs
  }

  /** Of those that are `awaited`, the one by which it was refused for longest, as far as that is believed. */
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
   * For as long as it tells, which under elastic throttling is told of the limit: capacity to spare may be back before, and
   * where there is some, there is room below the ceiling before.
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
