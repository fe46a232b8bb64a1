/**
 * Metrics of a limiter through OpenTelemetry. docs/guides/metrics.md lists every instrument.
 * @module @sluice/core/otel
 */

export { instrument } from "./otel/instrument.ts"
export type { InstrumentOptions } from "./otel/options.ts"
