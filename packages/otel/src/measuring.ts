import type { Attributes, Counter } from "@opentelemetry/api"

/**
 * The limiter's name, an attribute of every instrument. All attributes follow OpenTelemetry's naming guidelines
 * (https://opentelemetry.io/docs/specs/semconv/general/naming/). Each attribute has a bounded set of values: names
 * from the app or its rules, or fixed words. Attributes never identify clients, because there may be any number of
 * clients, and their addresses are private.
 */
export const LIMITER = "sluice.limiter.name"
/** Name of the rule. */
export const POLICY = "sluice.policy.name"
/** Result of a decision: admitted · over_limit · refused · shadowed */
export const RESULT = "sluice.decision.result"
/** Mode of a decision: normal · degraded (made without the shared store) */
export const MODE = "sluice.decision.mode"
/** The method that made the decision: decide · takeUpTo · acquire · hold */
export const OPERATION = "sluice.operation.name"
/** The `refusal` of a refused or shadowed decision. */
export const REFUSAL = "sluice.refusal.reason"
/** Percentage of the limit that a client has used, from the rule's `notify`. */
export const THRESHOLD = "sluice.policy.threshold"
/** The outcome of leased units: booked · granted · returned · lost */
export const LEASE_RESULT = "sluice.lease.result"
/** Name of the data center to whose counters units are charged. */
export const MIRROR = "sluice.mirror"
/** A standard attribute of OpenTelemetry: https://opentelemetry.io/docs/specs/semconv/registry/attributes/error/ */
export const ERROR_TYPE = "error.type"

/** A measurement of a limiter. */
export interface Measuring {
  /** Adds the collected sums to the counters. Called when metrics are collected, and at the end. */
  flush(): void
  /** Removes the listeners from the limiter. */
  end(): void
}

/**
 * Sums that are kept until metrics are collected, and then added to a counter. For each `add`, an SDK converts the
 * attributes to a string to look up the sum. This takes longer than a decision in memory.
 *
 * An observable counter would also avoid this cost, but it gives wrong sums under a view that drops attributes.
 */
export class Tally {
  readonly #counter: Pick<Counter, "add">
  readonly #sums = new Map<string, { readonly attributes: Attributes; sum: number }>()

  constructor(counter: Pick<Counter, "add">) {
    this.#counter = counter
  }

  /**
   * Adds one to the sum of a key. Different attributes need different keys. `attributesOf` is only called for a new
   * key.
   */
  count(key: string, attributesOf: () => Attributes): void {
    const found = this.#sums.get(key)
    if (found === undefined) this.#sums.set(key, { attributes: attributesOf(), sum: 1 })
    else found.sum++
  }

  /** Adds the sums to the counter. Removes all keys, because some may belong to rules that no longer exist. */
  readonly flush = (): void => {
    for (const { attributes, sum } of this.#sums.values()) this.#counter.add(sum, attributes)
    this.#sums.clear()
  }
}
