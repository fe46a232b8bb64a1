/**
 * Metrics of a limiter through OpenTelemetry. docs/production/metrics.md lists every instrument.
 * @module @sluice/otel
 */

export { instrument } from "./instrument.ts"
export type { InstrumentOptions } from "./options.ts"
