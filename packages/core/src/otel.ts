/**
 * Metrics of a limiter by OpenTelemetry. docs/guides/metrics.md has every instrument.
 * @module @sluice/core/otel
 */

export { instrument } from "./otel/instrument.ts"
export type { InstrumentOptions } from "./otel/options.ts"
