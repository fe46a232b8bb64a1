import type { BatchObservableResult, Meter } from "@opentelemetry/api"
import type { Limiter, LimiterStatus } from "@sluice/core"
import { LEASE_RESULT, LIMITER, type Measuring } from "./measuring.ts"
import { createCounter, type Fit } from "./series.ts"

const RESULTS = ["booked", "granted", "returned", "lost"] as const

/**
 * Measures the leases of a limiter's store: the units that are held when metrics are collected, and the outcome of
 * leased units. Observes nothing if the store does not lease.
 */
export function measureLeases<Request>(
  limiter: Limiter<Request>,
  meter: Meter,
  name: string,
  fit: Fit,
): Measuring {
  const held = meter.createObservableGauge("sluice.store.lease.held", {
    description: "Number of units that the leases of this process hold, which are booked but not used yet.",
    unit: "{unit}",
  })
  const heldOff = meter.createObservableGauge("sluice.store.hold_off", {
    description:
      "Number of counters that are held off, because the store is not called for a moment after a refusal.",
    unit: "{counter}",
  })
  const units = createCounter(meter, fit, "sluice.store.lease.units", {
    description:
      "Number of leased units that were booked, granted to requests, returned to the store, or lost.",
    unit: "{unit}",
  })
  const attributes = { [LIMITER]: name }
  const observe = (result: BatchObservableResult) => {
    const { leases } = limiter.status
    if (leases === undefined) return
    result.observe(held, leases.held, attributes)
    result.observe(heldOff, leases.heldOff, attributes)
  }
  const observables = [held, heldOff]
  meter.addBatchObservableCallback(observe, observables)
  let before: Partial<NonNullable<LimiterStatus["leases"]>> = limiter.status.leases ?? {}
  return {
    flush() {
      const { leases } = limiter.status
      if (leases === undefined) return
      for (const result of RESULTS) {
        const more = leases[result] - (before[result] ?? 0)
        if (more > 0) units.add(more, { ...attributes, [LEASE_RESULT]: result })
      }
      before = leases
    },
    end: () => meter.removeBatchObservableCallback(observe, observables),
  }
}
