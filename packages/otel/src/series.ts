import type { Attributes, Counter, Meter, MeterProvider, MetricOptions } from "@opentelemetry/api"
import { warnOncePerLogger } from "@sluice/core/kit"
import { LIMITER, POLICY } from "./measuring.ts"

/** The attribute sets that the SDK keeps for an instrument, unless a view or its reader sets another limit. */
export const DEFAULT_CARDINALITY = 2_000
/** Attribute sets left for `OTHER`, with each result, mode, call, reason and percentage. */
const RESERVED = 200
/** The name of the limiters and rules that are counted together. */
const OTHER = "_other"

/** Returns the attributes for a measurement of an instrument: these, or those of `OTHER`. */
export type Fit = (instrument: string, attributes: Attributes) => Attributes

/**
 * The attribute sets of each instrument. The limiters of an app share its provider. An SDK with cumulative temporality
 * never forgets a set, and the provider does not expose the temporality of its readers.
 */
const known = new WeakMap<MeterProvider, Map<string, Set<string>>>()

/**
 * Returns a function that bounds the attribute sets of each instrument. An SDK drops all attributes of a set beyond its
 * limit, without a message, so alerts about an outage would miss it. Here, result and mode stay, and a warning is
 * logged.
 */
export function fitTo(cardinalityLimit: number, meterProvider: MeterProvider): Fit {
  const instruments = known.get(meterProvider) ?? new Map<string, Set<string>>()
  known.set(meterProvider, instruments)
  return (instrument, attributes) => {
    const sets = instruments.get(instrument) ?? new Set()
    instruments.set(instrument, sets)
    const key = JSON.stringify(attributes)
    if (sets.has(key)) return attributes
    if (sets.size < cardinalityLimit - RESERVED) {
      sets.add(key)
      return attributes
    }
    warnOncePerLogger(
      undefined,
      "SLUICE_SERIES_LIMIT",
      `${instrument} has ${sets.size} series, so further limiters and rules are counted together as "${OTHER}". Raise the aggregationCardinalityLimit of the MeterProvider's view, and cardinalityLimit of instrument()`,
    )
    return { ...attributes, [LIMITER]: OTHER, ...(POLICY in attributes && { [POLICY]: OTHER }) }
  }
}

/** Creates a counter whose attribute sets are bounded. */
export function createCounter(
  meter: Meter,
  fit: Fit,
  instrument: string,
  options: MetricOptions,
): Pick<Counter, "add"> {
  const counter = meter.createCounter(instrument, options)
  return { add: (value, attributes = {}) => counter.add(value, fit(instrument, attributes)) }
}
