/** Maximum number of steps and maximum milliseconds that long tasks use in one turn of the event loop. */
const MOST_STEPS = 16
const MOST_MS = 5
/**
 * Steps that a task may run before the next task runs. This number lets a small batch finish in one turn, so
 * that its objects do not outlive the turn.
 */
const STEPS_IN_A_ROW = 16

/** A task that takes too long for one turn of the event loop. */
export interface LongWork {
  /**
   * Runs the next step, which takes well below a millisecond. Returns false after the last step, or if the task cannot
   * continue.
   */
  step(): boolean
}

interface WaitingWork {
  readonly work: LongWork
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
  /** Remaining steps of this task before the next task runs. */
  stepsLeft: number
}

/**
 * Runs long tasks in steps: at most 16 steps, and at most about 5 ms, in one turn of the event loop. Between turns,
 * other calls are read and answered. Waiting tasks take turns, so that a short task need not wait until a long task
 * ends.
 */
class WorkTurns {
  readonly #waiting: WaitingWork[] = []

  /** Runs all steps of a task. Rejects with the error that a step throws. */
  run(work: LongWork): Promise<void> {
    return new Promise((resolve, reject) => {
      // Never start immediately. Several calls may be read in one turn, and each would use the steps of a whole turn.
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

  /**
   * Runs one step of the first task in the queue. Then removes the task, keeps it in place, or moves it to the end of
   * the queue.
   */
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

/** Runs the long tasks of this process. All of them share this instance, because a process has one event loop. */
export const turns = new WorkTurns()

/** Maps an array in steps, which are spread over turns of the event loop. Rejects with the error that `map` throws. */
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
