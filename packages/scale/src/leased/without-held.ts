import type { Check, StoreReading } from "@sluice/core/stores"
import type { Leases } from "./leases.ts"

/**
 * Returns a reading in which the held units of this process count as left. The counter of a check that costs more than
 * is held is reported as the store sees it, because `take` sends that check to the store in full.
 */
export function withoutHeld(
  checks: readonly Check[],
  reading: StoreReading,
  leases: Leases,
  nowMs: number,
): StoreReading {
  const counters = reading.counters.map((counter, i) => {
    const check = checks[i] as Check
    const isBeforePenalty = checks[i + 1]?.policy.algorithm === "penalty"
    const lease = !isBeforePenalty && leases.mayLease(check.policy) ? leases.holding(check, nowMs) : undefined
    if (lease?.covers(check.cost) !== true || lease.bookings.units === 0) return counter
    return { ...counter, state: lease.bookings.without(counter.state, reading.nowMs) }
  })
  return { ...reading, counters }
}
