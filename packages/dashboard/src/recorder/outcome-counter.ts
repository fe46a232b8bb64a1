import { OutcomeRing } from "./outcome-ring.ts"
import { type DecisionOutcome, OUTCOMES, type OutcomeCounts, SECONDS, SLOT_MS, SLOTS } from "./snapshot.ts"

/** The place of each outcome in a list of counts. A number costs less on the way of a decision than a name. */
export const ADMITTED = 0
export const REFUSED = 1
export const SHADOWED = 2
export const OVER_LIMIT = 3
export const DEGRADED = 4

const SLOT_SECONDS = SLOT_MS / 1_000

/** Sums over the last 300 seconds and over the last day, to be added to. */
export interface RecorderSums {
  readonly seconds: Record<DecisionOutcome, number>
  readonly slots: Record<DecisionOutcome, number>
}

/**
 * Counts the outcomes of a rule in the last 300 seconds and in the slots of the last day. A decision only adds to the
 * current second, which is written to both rings when the next second begins.
 */
export class OutcomeCounter {
  readonly #seconds = new OutcomeRing(SECONDS)
  readonly #slots = new OutcomeRing(SLOTS)
  readonly #current = new Uint32Array(OUTCOMES.length)
  #second = Number.NEGATIVE_INFINITY

  /** Counts an outcome in a second since the epoch. */
  add(outcome: number, second: number): void {
    if (second !== this.#second) this.#turn(second)
    this.#current[outcome] = (this.#current[outcome] as number) + 1
  }

  read(second: number): { readonly seconds: OutcomeCounts; readonly slots: OutcomeCounts } {
    this.#turn(second)
    return {
      seconds: this.#seconds.read(second),
      slots: this.#slots.read(Math.floor(second / SLOT_SECONDS)),
    }
  }

  /** Adds the counts of the last 300 seconds and of the last day to `sums`. */
  addTo({ seconds, slots }: RecorderSums, second: number): void {
    this.#turn(second)
    this.#seconds.addTo(seconds, second)
    this.#slots.addTo(slots, Math.floor(second / SLOT_SECONDS))
  }

  #turn(second: number): void {
    for (const [outcome, count] of this.#current.entries()) {
      if (count === 0) continue
      this.#seconds.add(outcome, count, this.#second)
      this.#slots.add(outcome, count, Math.floor(this.#second / SLOT_SECONDS))
    }
    this.#current.fill(0)
    this.#second = second
  }
}
