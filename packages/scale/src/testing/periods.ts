import type { Policy } from "@sluice/core/stores"

/** Lengths of periods that follow each other, as parts of the longest one. */
const LENGTHS = [1, 0.6, 0.85, 0.95]
const MANY = 1_000

/** Returns the boundaries of calendar periods, of which `windowMs` is the longest, from shortly before 2024. */
export function boundariesOf(windowMs: number): readonly number[] {
  let endMs = Date.UTC(2024, 0, 1) - 3 * windowMs - 7
  return Array.from({ length: MANY }, (_, i) => {
    endMs += Math.ceil(windowMs * (LENGTHS[i % LENGTHS.length] as number))
    return endMs
  })
}

/** Returns the length of the longest time that touches at most two windows of the policy. */
export function touchesTwoMs({ windowMs, periods }: Policy): number {
  return periods === undefined ? windowMs : Math.floor(windowMs * Math.min(...LENGTHS))
}

/** The boundaries that a process sends. It computes them once in each period, by its own clock. */
export class SentPeriods {
  readonly #boundaries: readonly number[]
  #sent: readonly number[] = []

  constructor(boundaries: readonly number[]) {
    this.#boundaries = boundaries
  }

  /** Returns the boundaries of the previous, the current and the next period. */
  at(nowMs: number): readonly number[] {
    const next = this.#boundaries.findIndex((boundaryMs) => boundaryMs > nowMs)
    if (this.#sent[2] !== this.#boundaries[next]) this.#sent = this.#boundaries.slice(next - 2, next + 2)
    return this.#sent
  }
}
