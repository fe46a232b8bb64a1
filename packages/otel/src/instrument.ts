import { type MeterProvider, metrics } from "@opentelemetry/api"
import type { Limiter } from "@sluice/core"
import manifest from "../package.json" with { type: "json" }
import { measureCharges } from "./charges.ts"
import { measureDecisions } from "./decisions.ts"
import { countErrors } from "./errors.ts"
import { measureLeases } from "./leases.ts"
import { countNearLimit } from "./near-limit.ts"
import { checkArguments, type InstrumentOptions } from "./options.ts"
import { measurePermits } from "./permits.ts"
import { DEFAULT_CARDINALITY, type Fit, fitTo } from "./series.ts"
import { observeState } from "./state.ts"

/**
 * Measures a limiter with OpenTelemetry: decisions by rule, result and mode, their duration, errors, and state. All
 * instruments are listed in docs/production/metrics.md. Attributes never identify clients.
 *
 * Returns a function that stops measuring. Closing the limiter also stops it. A second call with the same name does
 * not count decisions twice. Measuring ends when both returned functions have been called.
 *
 * @example
 * ```ts
 * import { createLimiter } from "@sluice/core"
 * import { instrument } from "@sluice/otel"
 *
 * const limiter = createLimiter({ limit: 100, window: "1 minute" })
 * const stop = instrument(limiter) // of a middleware: instrument(limits.limiter)
 * ```
 * @throws {@link InvalidOptionError}
 */
export function instrument<Request>(limiter: Limiter<Request>, options: InstrumentOptions = {}): () => void {
  checkArguments(limiter, options)
  const { meterProvider = metrics.getMeterProvider(), name = limiter.status.service } = options
  const fit = fitTo(options.cardinalityLimit ?? DEFAULT_CARDINALITY, meterProvider)
  const measured = measuredBy(limiter, meterProvider)
  let measurement = measured.get(name)
  if (measurement === undefined) {
    measurement = { users: 0, end: measure(limiter, meterProvider, name, fit, () => measured.delete(name)) }
    measured.set(name, measurement)
  }
  return useOf(measurement)
}

/** The measurement of a limiter under one name, with the number of its users. */
interface Measurement {
  users: number
  readonly end: () => void
}

/** Adds a user. Returns a function that removes the user, and ends the measurement with its last user. */
function useOf(measurement: Measurement): () => void {
  measurement.users++
  let isEnded = false
  return () => {
    if (isEnded) return
    isEnded = true
    if (--measurement.users === 0) measurement.end()
  }
}

/**
 * All measurements. Modules share a measurement, because otherwise two modules that measure the same limiter would
 * double its counts.
 */
const measurements = new WeakMap<object, WeakMap<MeterProvider, Map<string, Measurement>>>()

/** Returns the measurements of a limiter through a provider, by name. */
function measuredBy(limiter: object, meterProvider: MeterProvider): Map<string, Measurement> {
  const ofLimiter = measurements.get(limiter) ?? new WeakMap<MeterProvider, Map<string, Measurement>>()
  const byProvider = ofLimiter.get(meterProvider) ?? new Map<string, Measurement>()
  measurements.set(limiter, ofLimiter.set(meterProvider, byProvider))
  return byProvider
}

/** Measures the limiter until the limiter closes. Returns a function that ends the measurement earlier. */
function measure<Request>(
  limiter: Limiter<Request>,
  meterProvider: MeterProvider,
  name: string,
  fit: Fit,
  onEnd: () => void,
): () => void {
  const meter = meterProvider.getMeter(manifest.name, manifest.version)
  const parts = [
    measureDecisions(limiter, meter, name, fit),
    countNearLimit(limiter, meter, name, fit),
    countErrors(limiter, meter, name, fit),
    measureLeases(limiter, meter, name, fit),
    measurePermits(limiter, meter, name, fit),
    measureCharges(limiter, meter, name, fit),
  ]
  const flush = () => {
    for (const part of parts) part.flush()
  }
  const stopObserving = observeState(limiter, meter, name, flush)
  const end = () => {
    onEnd()
    limiter.off("closed", end)
    stopObserving()
    for (const part of parts) part.end()
    flush()
  }
  limiter.on("closed", end)
  return end
}
