import { setImmediate as nextTurn } from "node:timers/promises"

/** Steps run for this long before the event loop gets its turn. With one more document, a slice stays below 5 ms. */
const SLICE_MS = 1

/** Work in steps, such as one for each rule of a document. It yields after each of them. */
export type Steps<Result> = Generator<unknown, Result>

/** Runs all steps at once. Returns the result. */
export function atOnce<Result>(steps: Steps<Result>): Result {
  for (;;) {
    const { done, value } = steps.next()
    if (done === true) return value
  }
}

/** Runs the steps in slices and lets the event loop run in between. Rejects with the error that a step throws. */
export async function inSlices<Result>(steps: Steps<Result>): Promise<Result> {
  const slices = new Slices()
  for (;;) {
    const { done, value } = steps.next()
    if (done === true) return value
    if (slices.isUsedUp) await slices.pause()
  }
}

/** A timer that cuts long work into slices, so that the event loop can run between them. */
export class Slices {
  #beganAtMs = performance.now()

  /** True when it is time for a `pause`. */
  get isUsedUp(): boolean {
    return performance.now() - this.#beganAtMs >= SLICE_MS
  }

  /** Lets requests and timers run, then begins the next slice. */
  async pause(): Promise<void> {
    await nextTurn()
    this.begin()
  }

  /** Begins a slice. The time before it does not count. */
  begin(): void {
    this.#beganAtMs = performance.now()
  }
}
