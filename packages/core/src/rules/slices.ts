import { setImmediate as nextTurn } from "node:timers/promises"

/**
 * Work that takes longer than this gives requests a turn: with one more document, and what the compiler does
 * meanwhile, it stays below 5 ms.
 */
const SLICE_MS = 1

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
