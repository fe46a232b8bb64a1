import { ALGORITHMS } from "../../algorithms/by-name.ts"
import type { Answer, Check, Counted } from "../store.ts"

/** Refusals kept at the most: some 20 MB. The oldest go first, and then Redis is asked again. */
const MOST_REFUSALS = 100_000

/** When a question was sent and when its answer had come, in milliseconds of one clock. */
export interface Between {
  readonly sentAtMs: number
  readonly answeredAtMs: number
}

/** A refusal that Redis gave. */
interface Refusal {
  readonly cost: number
  readonly limit: number
  readonly counted: Counted
  /** The server's time at which it was given. */
  readonly serverMs: number
  /** By this process' clock, the instants between which that was. */
  readonly between: Between
  /** How long it is believed. */
  readonly forMs: number
}

/**
 * Remembers who is refused until when, so that a client that keeps knocking costs Redis nothing. A refusal answers only
 * checks that ask as much or more of a limit that is as low or lower: what others take meanwhile can only prolong it.
 * Units that another process gives back, or a counter that it resets, are seen after `longestMs`.
 */
export class DenyCache {
  readonly #longestMs: number
  readonly #refusals = new Map<string, Refusal>()

  /** 0 turns it off. */
  constructor(longestMs: number) {
    this.#longestMs = longestMs
  }

  get size(): number {
    return this.#refusals.size
  }

  /** Remembers what was refused at this time of the server's, which was between these instants. */
  remember(key: string, { policy, cost }: Check, counted: Counted, serverMs: number, between: Between): void {
    if (this.#longestMs === 0) return
    const waitMs = ALGORITHMS[policy.algorithm].retryAfterMs(counted, policy, cost, serverMs)
    // What never fits says nothing about the client's next request.
    if (waitMs === Number.POSITIVE_INFINITY) return
    // The server's time is cut to a whole millisecond: it was that much later, and the end may be that much nearer.
    const certainMs = waitMs - 1
    if (certainMs <= 0) return
    this.#refusals.delete(key)
    this.#refusals.set(key, {
      cost,
      limit: policy.limit,
      counted,
      serverMs,
      between,
      forMs: Math.min(certainMs, this.#longestMs),
    })
    if (this.#refusals.size > MOST_REFUSALS) this.#forgetOldest()
  }

  /** The answer to a request of which a check is known to be refused; undefined when Redis has to be asked. */
  answer(keys: readonly string[], checks: readonly Check[], nowMs: number): Answer | undefined {
    for (let i = 0; i < checks.length; i++) {
      const check = checks[i] as Check
      const key = keys[i] as string
      const refusal = this.#refusals.get(key)
      if (refusal === undefined || check.shadow) continue
      const { sentAtMs, answeredAtMs } = refusal.between
      const elapsedMs = nowMs - sentAtMs
      if (!(elapsedMs >= 0 && elapsedMs < refusal.forMs)) {
        this.#refusals.delete(key)
        continue
      }
      if (check.cost < refusal.cost || check.policy.limit > refusal.limit) continue
      // It is believed a little too short, and the wait that it tells is a little too long: both are true so.
      const serverMs = refusal.serverMs + Math.max(0, Math.floor(nowMs - answeredAtMs))
      const state = ALGORITHMS[check.policy.algorithm].at(refusal.counted, check.policy, serverMs)
      const { previous, current, startMs } = state
      const counted = checks.map((_, nth) =>
        nth === i ? { previous, current, startMs, taken: 0 } : undefined,
      )
      return { nowMs: serverMs, granted: false, checks: counted }
    }
    return undefined
  }

  forget(key: string): void {
    this.#refusals.delete(key)
  }

  clear(): void {
    this.#refusals.clear()
  }

  #forgetOldest(): void {
    for (const key of this.#refusals.keys()) {
      this.#refusals.delete(key)
      return
    }
  }
}
