import type { CounterState } from "../../algorithms/algorithm.ts"
import { algorithmOf } from "../../algorithms/kinds.ts"
import type { Check, StoreResult } from "../store.ts"
import { takeTogether } from "../take-together.ts"

/** Most counters that one call reads, so that no call occupies the server for long. */
export const MOST_PEEKED = 64

/** A counter as a server has told it. */
export interface ReadCounter {
  readonly state: CounterState
  /** The server's time. */
  readonly nowMs: number
}

/** Returns what a take of these checks would answer. */
export function peekAnswer(checks: readonly Check[], found: ReadonlyMap<Check, ReadCounter>): StoreResult {
  const counters = checks.map((check) => found.get(check) as ReadCounter)
  const nowMs = Math.max(...counters.map((counter) => counter.nowMs))
  const pending = checks.map((check, i) => {
    const algorithm = algorithmOf(check.policy)
    const state = algorithm.at((counters[i] as ReadCounter).state, check.policy, nowMs)
    return { check, algorithm, state, taken: 0 }
  })
  const counted = pending.map(({ state }) => ({ state, taken: 0 }))
  return { nowMs, granted: takeTogether(pending, nowMs), checks: counted }
}
