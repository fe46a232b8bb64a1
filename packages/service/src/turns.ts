/** Steps and milliseconds of long work in one turn of the event loop. */
const MOST_STEPS = 256
const MOST_MS = 5
/** Steps that a work does before another one has its steps. */
const STEPS_IN_A_ROW = 16

/** Work that takes too long for one turn of the event loop. */
export interface LongWork {
  /** Does the next step. Returns false when it was the last one, or when the work cannot go on. */
  step(): boolean
}

interface Waiting {
  readonly work: LongWork
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
}

/**
 * Does long work in steps: at most 256 of them, and at most about 5 ms, in one turn of the event loop. Between turns, other
 * calls are read and answered. Works that wait together take turns, so that a short one need not wait for a long one.
 */
export class Turns {
  readonly #waiting: Waiting[] = []

  /** Does the work's steps. Rejects with the error that a step throws. */
  run(work: LongWork): Promise<void> {
    return new Promise((resolve, reject) => {
      // Never at once: calls that are read in one turn would each have the steps of a turn.
      if (this.#waiting.length === 0) setImmediate(this.#turn)
      this.#waiting.push({ work, resolve, reject })
    })
  }

  readonly #turn = (): void => {
    const endsAtMs = performance.now() + MOST_MS
    let left = MOST_STEPS
    let next = this.#waiting[0]
    while (next !== undefined && left > 0) {
      this.#waiting.shift()
      left = this.#doSteps(next, left, endsAtMs)
      next = this.#waiting[0]
    }
    if (next !== undefined) setImmediate(this.#turn)
  }

  /** Does some steps, and puts the work back in line if it has more of them. Returns how many steps are left in this turn. */
  #doSteps(waiting: Waiting, left: number, endsAtMs: number): number {
    const { work, resolve, reject } = waiting
    const leftAfter = Math.max(0, left - STEPS_IN_A_ROW)
    try {
      for (let i = left; i > leftAfter; i--) {
        if (!work.step()) {
          resolve()
          return i - 1
        }
        if (performance.now() >= endsAtMs) {
          this.#waiting.push(waiting)
          return 0
        }
      }
    } catch (error) {
      reject(error)
      return leftAfter
    }
    this.#waiting.push(waiting)
    return leftAfter
  }
}

/** The turns of this process, which has one event loop. */
export const turns = new Turns()

/** Maps a list item by item, in the turns of this process. Rejects with the error that `map` throws. */
export async function mapInTurns<Item, Result>(
  items: readonly Item[],
  map: (item: Item, index: number) => Result,
): Promise<Result[]> {
  const results: Result[] = []
  await turns.run({
    step() {
      const index = results.length
      if (index < items.length) results.push(map(items[index] as Item, index))
      return results.length < items.length
    },
  })
  return results
}
