import { algorithmOf } from "../../algorithms/kinds.ts"
import type { Check, Counted, StoreResult } from "../store.ts"
import { takeTogether } from "../take-together.ts"
import type { Lease } from "./lease.ts"
import type { Leases } from "./leases.ts"

/**
 * Returns what a peek sees if the held units of this process count as left. A check that costs more than is held is
 * reported as the store sees it, because `take` sends it to the store in full.
 */
export function peeked(
  checks: readonly Check[],
  answer: StoreResult,
  leases: Leases,
  nowMs: number,
): StoreResult {
  const holding = checks.map((check, i) => {
    const lease: Lease | undefined = leases.mayLease(check.policy) ? leases.holding(check, nowMs) : undefined
    const isBeforePenalty = checks[i + 1]?.policy.algorithm === "penalty"
    return !isBeforePenalty && lease?.covers(check.cost) === true && lease.bookings.units > 0
      ? lease
      : undefined
  })
  const counted = answer.checks.filter((one) => one !== undefined)
  if (holding.every((lease) => lease === undefined) || counted.length < checks.length) return answer
  const pending = checks.map((check, i) => {
    const { state } = counted[i] as Counted
    const left = holding[i]?.bookings.without(state, answer.nowMs) ?? state
    return { check, algorithm: algorithmOf(check.policy), state: left, taken: 0 }
  })
  const seen = pending.map(({ state }) => ({ state, taken: 0 }))
  const granted = takeTogether(pending, answer.nowMs)
  return { ...answer, granted, checks: seen }
}
