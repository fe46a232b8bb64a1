import { type PacedCall, watch } from "./watch.ts"

interface WaitingCall {
  readonly call: PacedCall
  /** The time at which the call gives up, in terms of `performance.now()`. */
  readonly untilMs: number
  stop(): void
  resolve(sent: number): void
  reject(reason: unknown): void
}

/**
 * The calls that wait at a gate, in the order in which they arrived. Each call leaves the line at its deadline, or
 * when it is aborted.
 */
export class CallLine {
  readonly #waiting: WaitingCall[] = []

  get length(): number {
    return this.#waiting.length
  }

  /**
   * Adds a call. Resolves with the number that {@link next} gives it. Rejects with the error of `tooLate` or the reason
   * of a signal, after which `left` is called.
   */
  join(call: PacedCall, tooLate: () => Error, left: () => void): Promise<number> {
    return new Promise((resolve, reject) => {
      const stop = watch(call, tooLate, (reason) => {
        this.#remove(waiting)
        reject(reason)
        left()
      })
      const waiting: WaitingCall = {
        call,
        untilMs: performance.now() + call.waitLeftMs,
        stop,
        resolve,
        reject,
      }
      this.#waiting.splice(this.placeOf(call), 0, waiting)
    })
  }

  /** Releases the first call, with the number `sent`. */
  next(sent: number): void {
    const { stop, resolve } = this.#waiting.shift() as WaitingCall
    stop()
    resolve(sent)
  }

  /** Rejects every call that gives up before `untilMs`. */
  rejectUntil(untilMs: number, tooLate: (call: PacedCall) => Error): void {
    for (const waiting of this.#waiting.filter((each) => each.untilMs < untilMs)) {
      this.#remove(waiting)
      waiting.stop()
      waiting.reject(tooLate(waiting.call))
    }
  }

  /** Returns the number of calls before a call. */
  placeOf({ order }: PacedCall): number {
    return this.#waiting.findLastIndex(({ call }) => call.order < order) + 1
  }

  #remove(waiting: WaitingCall): void {
    this.#waiting.splice(this.#waiting.indexOf(waiting), 1)
  }
}
