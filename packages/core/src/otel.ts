export { instrument } from "./otel/instrument.ts"
export type { InstrumentOptions } from "./otel/options.ts"
