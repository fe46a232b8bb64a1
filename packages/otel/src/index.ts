/**
 * Metrics of a limiter through OpenTelemetry. docs/guides/metrics.md lists every instrument.
 * @module @sluice/otel
 */

export { instrument } from "./instrument.ts"
export type { InstrumentOptions } from "./options.ts"
