import type { Attributes, BatchObservableResult, Meter } from "@opentelemetry/api"
import type { Limiter, LimiterStatus } from "@sluice/core"
import { LIMITER, type Measuring, MIRROR } from "./measuring.ts"
import { createCounter, type Fit } from "./series.ts"

/**
 * The name that stands for the shared counters of a store that writes back. These counters need no attribute to
 * distinguish them.
 */
const SHARED = ""

/** A kind of charges, with the names and descriptions of its instruments. */
interface ChargeKind {
  readonly prefix: string
  readonly title: string
  countsOf(status: LimiterStatus): NonNullable<LimiterStatus["mirrors"]>
}

const KINDS: readonly ChargeKind[] = [
  {
    prefix: "sluice.store.settle",
    title: "the shared counters",
    countsOf: ({ writeBack }) => (writeBack === undefined ? {} : { [SHARED]: writeBack }),
  },
  {
    prefix: "sluice.store.mirror",
    title: "another data center",
    countsOf: ({ mirrors = {} }) => mirrors,
  },
]

/**
 * Measures the charges of a limiter's store to other counters. Observes nothing if the store does not charge other
 * counters.
 */
export function measureCharges<Request>(
  limiter: Limiter<Request>,
  meter: Meter,
  name: string,
  fit: Fit,
): Measuring {
  const parts = KINDS.map((kind) => measureKind(kind, limiter, meter, { [LIMITER]: name }, fit))
  return {
    flush() {
      for (const part of parts) part.flush()
    },
    end() {
      for (const part of parts) part.end()
    },
  }
}

function measureKind<Request>(
  { prefix, title, countsOf }: ChargeKind,
  limiter: Limiter<Request>,
  meter: Meter,
  ofLimiter: Attributes,
  fit: Fit,
): Measuring {
  const age = meter.createObservableGauge(`${prefix}.age`, {
    description: `Time for which charges to ${title} have been failing. 0 while they are confirmed.`,
    unit: "s",
  })
  const lost = createCounter(meter, fit, `${prefix}.lost`, {
    description: `Number of admitted units whose charge to ${title} was not confirmed.`,
    unit: "{unit}",
  })
  const attributesOf = (mirror: string): Attributes =>
    mirror === SHARED ? ofLimiter : { ...ofLimiter, [MIRROR]: mirror }
  const observe = (result: BatchObservableResult) => {
    for (const [mirror, { failingMs }] of Object.entries(countsOf(limiter.status))) {
      result.observe(age, failingMs / 1_000, attributesOf(mirror))
    }
  }
  meter.addBatchObservableCallback(observe, [age])
  let before = countsOf(limiter.status)
  return {
    flush() {
      const counts = countsOf(limiter.status)
      for (const [mirror, { lost: units }] of Object.entries(counts)) {
        const more = units - (before[mirror]?.lost ?? 0)
        if (more > 0) lost.add(more, attributesOf(mirror))
      }
      before = counts
    },
    end: () => meter.removeBatchObservableCallback(observe, [age]),
  }
}
