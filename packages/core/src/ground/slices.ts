import { setImmediate as nextTurn } from "node:timers/promises"

/**
 * Milliseconds of work after which other work of the event loop may run. A slice only ends after a whole document,
 * but still stays below 5 ms.
 */
const SLICE_MS = 1

/**
 * Work that can pause, for example after each rule of a document. The generator yields at each point where it can
 * pause.
 */
export type Pausable<Result> = Generator<unknown, Result>

/** Runs the work without a pause. Returns the result. */
export function atOnce<Result>(work: Pausable<Result>): Result {
  for (;;) {
    const { done, value } = work.next()
    if (done === true) return value
  }
}

/**
 * Runs the work in slices. Between two slices, other work of the event loop can run. Rejects with the error that the
 * work throws.
 */
export async function inSlices<Result>(work: Pausable<Result>): Promise<Result> {
  const slices = new Slices()
  for (;;) {
    const { done, value } = work.next()
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

  /** Waits for requests and timers of the event loop, then begins the next slice. */
  async pause(): Promise<void> {
    await nextTurn()
    this.begin()
  }

  /** Begins a slice. The time before this call does not count. */
  begin(): void {
    this.#beganAtMs = performance.now()
  }
}
