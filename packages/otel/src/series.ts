import type { Attributes, Counter, Meter, MeterProvider, MetricOptions } from "@opentelemetry/api"
import { warnOncePerLogger } from "@sluice/core/kit"
import { LIMITER, POLICY } from "./measuring.ts"

/**
 * Default number of attribute sets that the SDK keeps for an instrument. A view or the reader can set another limit.
 */
export const DEFAULT_CARDINALITY = 2_000
/** Number of attribute sets reserved for `OTHER`, for the combinations of result, mode, call, reason and percentage. */
const RESERVED = 200
/** The name of the limiters and rules that are counted together. */
const OTHER = "_other"

/** Returns the attributes for a measurement of an instrument: the given attributes, or the attributes of `OTHER`. */
export type Fit = (instrument: string, attributes: Attributes) => Attributes

/**
 * The attribute sets of each instrument. They are stored by provider, because the limiters of an app share its
 * provider. They are never removed, because an SDK with cumulative temporality never forgets a set.
 */
const known = new WeakMap<MeterProvider, Map<string, Set<string>>>()

/**
 * Returns a function that bounds the attribute sets of each instrument. Beyond its limit, an SDK silently drops all
 * attributes of a set, so alerts would miss an outage. This function keeps result and mode instead, and logs a
 * warning.
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
