import { ClosedError } from "@sluice/core"
import { ignore, type ReadyOptions, unlessAborted } from "@sluice/core/rules"

interface Waiting {
  /** Number of the first load that settles this wait. */
  readonly from: number
  readonly retry: boolean
  resolve(): void
  reject(error: unknown): void
}

/** Calls that wait for the result of a load. Loads are numbered from 1. */
export class WaitingList {
  #waiting: readonly Waiting[] = []
  #closed: Error | undefined

  /**
   * Resolves when a load with this number or a higher one has succeeded. Rejects when one has failed, unless `retry` is
   * true. Rejects with the signal's reason when it is aborted.
   */
  async add(from: number, { retry = false, signal }: ReadyOptions): Promise<void> {
    signal?.throwIfAborted()
    this.requireOpen()
    let leave: () => void = ignore
    const ended = new Promise<void>((resolve, reject) => {
      const waiting = { from, retry, resolve, reject }
      this.#waiting = [...this.#waiting, waiting]
      leave = () => {
        this.#waiting = this.#waiting.filter((other) => other !== waiting)
      }
    })
    try {
      await unlessAborted(ended, signal)
    } finally {
      leave()
    }
  }

  succeeded(load: number): void {
    for (const { from, resolve } of this.#waiting) if (from <= load) resolve()
  }

  failed(load: number, error: Error): void {
    for (const { from, retry, reject } of this.#waiting) if (from <= load && !retry) reject(error)
  }

  /** Throws the error with which the list was closed. */
  requireOpen(): void {
    if (this.#closed !== undefined) throw this.#closed
  }

  /** Rejects all waiting calls, and all later ones. */
  close(error: Error): void {
    this.#closed = error
    for (const { reject } of this.#waiting) reject(error)
  }
}

/** Returns the error of calls to a closed book. */
export function closed(): ClosedError {
  return new ClosedError("The rule book is closed")
}
