import { type DecisionOutcome, OUTCOMES, type OutcomeCounts } from "./snapshot.ts"

/**
 * Counts outcomes in the latest spans of time, such as the last 300 seconds. Each outcome takes 4 bytes for each span
 * once it has occurred.
 */
export class OutcomeRing {
  readonly #spans: number
  readonly #counts: (Uint32Array | undefined)[] = OUTCOMES.map(() => undefined)
  /** The sum of each outcome over all spans, because adding them up for thousands of rules would delay decisions. */
  readonly #sums: number[] = OUTCOMES.map(() => 0)
  /** The latest span, as a number of spans since the epoch. */
  #last = Number.NEGATIVE_INFINITY

  constructor(spans: number) {
    this.#spans = spans
  }

  /** Counts outcomes of a span. A span before the latest one counts as the latest, because a clock may step back. */
  add(outcome: number, count: number, span: number): void {
    this.#advance(span)
    const counts = this.#counts[outcome] ?? new Uint32Array(this.#spans)
    this.#counts[outcome] = counts
    const at = this.#last % this.#spans
    counts[at] = (counts[at] as number) + count
    this.#sums[outcome] = (this.#sums[outcome] as number) + count
  }

  /** Returns the counts of all spans up to `span`, oldest first, without the zeros before the first count. */
  read(span: number): OutcomeCounts {
    this.#advance(span)
    const read: Partial<Record<DecisionOutcome, readonly number[]>> = {}
    for (const [at, name] of OUTCOMES.entries()) {
      const counts = this.#counts[at]
      if (counts === undefined) continue
      const next = (this.#last + 1) % this.#spans
      const all = [...counts.subarray(next), ...counts.subarray(0, next)]
      const first = all.findIndex((count) => count > 0)
      if (first >= 0) read[name] = all.slice(first)
    }
    return read
  }

  /** Adds the counts of all spans up to `span` to `sums`. */
  addTo(sums: Record<DecisionOutcome, number>, span: number): void {
    this.#advance(span)
    for (const [at, name] of OUTCOMES.entries()) sums[name] += this.#sums[at] as number
  }

  /** Clears the spans that have begun since the latest one. */
  #advance(span: number): void {
    if (span <= this.#last) return
    const passed = Math.min(span - this.#last, this.#spans)
    for (const [outcome, counts] of this.#counts.entries()) {
      for (let i = 0; counts !== undefined && i < passed; i++) {
        const at = (span - i) % this.#spans
        this.#sums[outcome] = (this.#sums[outcome] as number) - (counts[at] as number)
        counts[at] = 0
      }
    }
    this.#last = span
  }
}
