/** Steps and milliseconds of long work in one turn of the event loop. */
const MOST_STEPS = 16
const MOST_MS = 5
/** Steps that a work does before another one has its steps: those of a small batch, whose objects then do not outlive the turn. */
const STEPS_IN_A_ROW = 16

/** Work that takes too long for one turn of the event loop. */
export interface LongWork {
  /** Does the next step, which takes well below a millisecond. Returns false when it was the last one, or when the work cannot go on. */
  step(): boolean
}

interface WaitingWork {
  readonly work: LongWork
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
  /** Steps that it still has before another work's. */
  stepsLeft: number
}

/**
 * Does long work in steps: at most 16 of them, and at most about 5 ms, in one turn of the event loop. Between turns, other
 * calls are read and answered. Works that wait together take turns, so that a short one need not wait for a long one.
 */
class WorkTurns {
  readonly #waiting: WaitingWork[] = []

  /** Does the work's steps. Rejects with the error that a step throws. */
  run(work: LongWork): Promise<void> {
    return new Promise((resolve, reject) => {
      // Never at once: calls that are read in one turn would each have the steps of a turn.
      if (this.#waiting.length === 0) setImmediate(this.#turn)
      this.#waiting.push({ work, resolve, reject, stepsLeft: STEPS_IN_A_ROW })
    })
  }

  readonly #turn = (): void => {
    const endsAtMs = performance.now() + MOST_MS
    for (let left = MOST_STEPS; left > 0; left--) {
      const first = this.#waiting[0]
      if (first === undefined) return
      this.#doStep(first)
      if (performance.now() >= endsAtMs) break
    }
    if (this.#waiting.length > 0) setImmediate(this.#turn)
  }

  /** Does a step of the first work in line. Then the work leaves, stays or goes to the end of the line. */
  #doStep(first: WaitingWork): void {
    let hasMore: boolean
    try {
      hasMore = first.work.step()
    } catch (error) {
      this.#waiting.shift()
      first.reject(error)
      return
    }
    first.stepsLeft--
    if (hasMore && first.stepsLeft > 0) return
    this.#waiting.shift()
    if (!hasMore) {
      first.resolve()
      return
    }
    first.stepsLeft = STEPS_IN_A_ROW
    this.#waiting.push(first)
  }
}

/** The turns of this process, which has one event loop. */
export const turns = new WorkTurns()

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
