import { metrics } from "@opentelemetry/api"
import manifest from "../../package.json" with { type: "json" }
import type { Limiter } from "../http/limiter.ts"
import { measureDecisions } from "./decisions.ts"
import { countErrors } from "./errors.ts"
import { checkArguments, type InstrumentOptions } from "./options.ts"
import { observeState } from "./state.ts"

/**
 * Measures a limiter by OpenTelemetry: decisions by rule, result and mode, how long they take, errors of the store and of the
 * rules, and what the limiter is at. docs/guides/metrics.md has all instruments. Yields what ends it; so does closing the
 * limiter. No attribute tells whom a rule counts.
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
  const meter = meterProvider.getMeter(manifest.name, manifest.version)
  const parts = [measureDecisions(limiter, meter, name), countErrors(limiter, meter, name)]
  const flush = () => {
    for (const part of parts) part.flush()
  }
  const stopObserving = observeState(limiter, meter, name, flush)
  const end = () => {
    limiter.off("closed", end)
    stopObserving()
    for (const part of parts) part.end()
    flush()
  }
  limiter.on("closed", end)
  return end
}
