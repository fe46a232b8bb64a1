import { setImmediate as nextTurn } from "node:timers/promises"

/**
 * Work that takes longer than this gives requests a turn: with one more document, and what the compiler does
 * meanwhile, it stays below 5 ms.
 */
const SLICE_MS = 1

/** Work in steps, such as one for each rule of a document. It yields after each of them. */
export type Steps<Result> = Generator<unknown, Result>

/** Does all steps at once. Returns the result. */
export function atOnce<Result>(steps: Steps<Result>): Result {
  for (;;) {
    const { done, value } = steps.next()
    if (done === true) return value
  }
}

/** Does the steps in slices, between which the event loop has its turn. Rejects with the error that a step throws. */
export async function inSlices<Result>(steps: Steps<Result>): Promise<Result> {
  const slices = new Slices()
  for (;;) {
    const { done, value } = steps.next()
    if (done === true) return value
    if (slices.isUsedUp) await slices.pause()
  }
}

/** Cuts long work into slices, between which the event loop has its turn. */
export class Slices {
  #beganAtMs = performance.now()

  /** Whether it is time for a `pause`. */
  get isUsedUp(): boolean {
    return performance.now() - this.#beganAtMs >= SLICE_MS
  }

  /** Lets requests and timers have their turn, and begins the next slice. */
  async pause(): Promise<void> {
    await nextTurn()
    this.begin()
  }

  /** Begins a slice: what came before was not this work. */
  begin(): void {
    this.#beganAtMs = performance.now()
  }
}
