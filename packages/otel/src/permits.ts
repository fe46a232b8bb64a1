import type { BatchObservableResult, Meter } from "@opentelemetry/api"
import type { Limiter, LimiterStatus } from "@sluice/core"
import { LIMITER, type Measuring, POLICY } from "./measuring.ts"
import { createCounter, type Fit } from "./series.ts"

/**
 * Measures the permits of rules with `concurrent`, by rule: those that this process holds when metrics are collected,
 * and how many it has renewed and lost. Observes nothing until such a rule has admitted a request.
 */
export function measurePermits<Request>(
  limiter: Limiter<Request>,
  meter: Meter,
  name: string,
  fit: Fit,
): Measuring {
  const held = meter.createObservableGauge("sluice.in_flight.held", {
    description: "Number of permits that requests of this process hold.",
    unit: "{permit}",
  })
  const oldest = meter.createObservableGauge("sluice.in_flight.oldest", {
    description: "Time for which the oldest permit of this process has been held.",
    unit: "s",
  })
  const renewed = createCounter(meter, fit, "sluice.in_flight.renewed", {
    description: "Number of permits that this process has renewed, because their requests were in progress.",
    unit: "{permit}",
  })
  const lost = createCounter(meter, fit, "sluice.in_flight.lost", {
    description: "Number of permits that ended although their requests were in progress.",
    unit: "{permit}",
  })
  const observe = (result: BatchObservableResult) => {
    for (const [policy, counts] of Object.entries(limiter.status.permits ?? {})) {
      const attributes = { [LIMITER]: name, [POLICY]: policy }
      result.observe(held, counts.held, attributes)
      result.observe(oldest, counts.oldestMs / 1_000, attributes)
    }
  }
  const observables = [held, oldest]
  meter.addBatchObservableCallback(observe, observables)
  let before: NonNullable<LimiterStatus["permits"]> = limiter.status.permits ?? {}
  return {
    flush() {
      const { permits = {} } = limiter.status
      for (const [policy, counts] of Object.entries(permits)) {
        const attributes = { [LIMITER]: name, [POLICY]: policy }
        const moreRenewed = counts.renewed - (before[policy]?.renewed ?? 0)
        const moreLost = counts.lost - (before[policy]?.lost ?? 0)
        if (moreRenewed > 0) renewed.add(moreRenewed, attributes)
        if (moreLost > 0) lost.add(moreLost, attributes)
      }
      before = permits
    },
    end: () => meter.removeBatchObservableCallback(observe, observables),
  }
}
