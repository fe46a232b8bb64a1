import { ClosedError } from "../../ground/errors.ts"
import { ignore } from "../../ground/time.ts"
import type { ReadyOptions } from "../rule-book.ts"

interface Waiting {
  /** The first load that will do. */
  readonly from: number
  readonly retry: boolean
  resolve(): void
  reject(error: unknown): void
}

/** Those who wait for the outcome of loads, which are numbered from 1. */
export class WaitingList {
  #waiting: readonly Waiting[] = []

  /**
   * Resolves when a load from this number on has succeeded, and rejects when one has failed, unless `retry` says to go
   * on. Rejects with the signal's reason when it is aborted.
   */
  add(from: number, { retry = false, signal }: ReadyOptions): Promise<void> {
    if (signal?.aborted) return Promise.reject(signal.reason)
    return new Promise((resolve, reject) => {
      let leave: () => void = ignore
      const end = (outcome: () => void): void => {
        signal?.removeEventListener("abort", leave)
        outcome()
      }
      const mine: Waiting = {
        from,
        retry,
        resolve: () => end(resolve),
        reject: (error) => end(() => reject(error)),
      }
      leave = () => {
        this.#waiting = this.#waiting.filter((other) => other !== mine)
        reject(signal?.reason)
      }
      signal?.addEventListener("abort", leave, { once: true })
      this.#waiting = [...this.#waiting, mine]
    })
  }

  succeeded(load: number): void {
    for (const { resolve } of this.#take(({ from }) => from <= load)) resolve()
  }

  failed(load: number, error: Error): void {
    for (const { reject } of this.#take(({ from, retry }) => from <= load && !retry)) reject(error)
  }

  close(error: Error): void {
    for (const { reject } of this.#take(() => true)) reject(error)
  }

  #take(isDue: (waiting: Waiting) => boolean): readonly Waiting[] {
    const due = this.#waiting.filter(isDue)
    this.#waiting = this.#waiting.filter((waiting) => !isDue(waiting))
    return due
  }
}

/** What is said to who asks a book that is closed, or waits for it. */
export function closed(): ClosedError {
  return new ClosedError("The rule book is closed")
}
