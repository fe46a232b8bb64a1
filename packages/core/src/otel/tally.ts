import type { Attributes, Counter } from "@opentelemetry/api"

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
