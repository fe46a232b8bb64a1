import { type MeterProvider, metrics } from "@opentelemetry/api"
import manifest from "../../package.json" with { type: "json" }
import type { Limiter } from "../limiter/limiter.ts"
import { measureDecisions } from "./decisions.ts"
import { countErrors } from "./errors.ts"
import { checkArguments, type InstrumentOptions } from "./options.ts"
import { observeState } from "./state.ts"

/**
 * Measures a limiter by OpenTelemetry: decisions by rule, result and mode, how long they take, errors of the store and of the
 * rules, and what the limiter is at. docs/guides/metrics.md has all instruments. Yields what ends it; so does closing the
 * limiter. No attribute tells whom a rule counts. Asked for twice under one name it is measured once, until both are ended.
 *
 * @example
 * ```ts
 * import { createLimiter } from "@sluice/core"
 * import { instrument } from "@sluice/core/otel"
 *
 * const limiter = createLimiter({ limit: 100, window: "1 minute" })
 * const stop = instrument(limiter) // of a middleware: instrument(limits.limiter)
 * ```
 * @throws {@link InvalidOptionError}
 */
export function instrument<Request>(limiter: Limiter<Request>, options: InstrumentOptions = {}): () => void {
  checkArguments(limiter, options)
  const { meterProvider = metrics.getMeterProvider(), name = limiter.status.service } = options
  const measured = measuredBy(limiter, meterProvider)
  let measurement = measured.get(name)
  if (measurement === undefined) {
    measurement = { users: 0, end: measure(limiter, meterProvider, name, () => measured.delete(name)) }
    measured.set(name, measurement)
  }
  return useOf(measurement)
}

/** A limiter that is measured under a name, and how many want it so. */
interface Measurement {
  users: number
  readonly end: () => void
}

/** Wants it for one more; yields what ends that, and once nobody wants it the measurement. */
function useOf(measurement: Measurement): () => void {
  measurement.users++
  let isEnded = false
  return () => {
    if (isEnded) return
    isEnded = true
    if (--measurement.users === 0) measurement.end()
  }
}

/** Two that measured the same, one in each of two modules of an app, would say twice of what there is. */
const measurements = new WeakMap<object, WeakMap<MeterProvider, Map<string, Measurement>>>()

/** What is measured of a limiter by a provider, by its name. */
function measuredBy(limiter: object, meterProvider: MeterProvider): Map<string, Measurement> {
  const ofLimiter = measurements.get(limiter) ?? new WeakMap<MeterProvider, Map<string, Measurement>>()
  const byProvider = ofLimiter.get(meterProvider) ?? new Map<string, Measurement>()
  measurements.set(limiter, ofLimiter.set(meterProvider, byProvider))
  return byProvider
}

/** Measures until it is ended or the limiter closed; yields what ends it. */
function measure<Request>(
  limiter: Limiter<Request>,
  meterProvider: MeterProvider,
  name: string,
  onEnd: () => void,
): () => void {
  const meter = meterProvider.getMeter(manifest.name, manifest.version)
  const parts = [measureDecisions(limiter, meter, name), countErrors(limiter, meter, name)]
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
