import type { Attributes, Counter } from "@opentelemetry/api"

/**
 * Attributes of the instruments, by OpenTelemetry's naming guidelines
 * (https://opentelemetry.io/docs/specs/semconv/general/naming/). Each has a bounded set of values: names that the app or its
 * rules give, and words of ours. Never whom a rule counts: clients have no end, and their addresses are nobody else's business.
 */
export const LIMITER = "sluice.limiter.name"
/** Name of the rule. */
export const POLICY = "sluice.policy.name"
/** admitted · over_limit · refused · shadowed */
export const RESULT = "sluice.decision.result"
/** normal · degraded: made without the shared store */
export const MODE = "sluice.decision.mode"
/** decide · takeUpTo · acquire · hold */
export const OPERATION = "sluice.operation.name"
/** A decision's `refusal`, of what is refused or shadowed. */
export const REFUSAL = "sluice.refusal.reason"
/** OpenTelemetry's own: https://opentelemetry.io/docs/specs/semconv/registry/attributes/error/ */
export const ERROR_TYPE = "error.type"

/** What is measured at a limiter. */
export interface Measuring {
  /** Hands over what has been added up: called when metrics are collected, and at the end. */
  flush(): void
  /** Leaves the limiter. */
  end(): void
}

/**
 * Sums of what is to be added to a counter, until metrics are collected: an SDK turns the attributes of each add into a text
 * to find its place, which takes longer than a decision in memory. A counter that adds up by itself, as observable ones do, would
 * not bear a view that leaves attributes out.
 */
export class Tally {
  readonly #counter: Counter
  readonly #sums = new Map<string, { readonly attributes: Attributes; sum: number }>()

  constructor(counter: Counter) {
    this.#counter = counter
  }

  /** Adds one. `key` is other for other attributes, and those are asked for only where they are new. */
  count(key: string, attributesOf: () => Attributes): void {
    const found = this.#sums.get(key)
    if (found === undefined) this.#sums.set(key, { attributes: attributesOf(), sum: 1 })
    else found.sum++
  }

  /** Hands over what has been added up. Forgets all keys, of which some may be of rules that are no more. */
  readonly flush = (): void => {
    for (const { attributes, sum } of this.#sums.values()) this.#counter.add(sum, attributes)
    this.#sums.clear()
  }
}
