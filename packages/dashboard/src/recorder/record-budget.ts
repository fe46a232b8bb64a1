/** The records of one limiter. */
export interface BoundedRecords {
  /** Deletes all records. */
  forget(): void
}

/** Most bytes that the records of all limiters of this process may take together. */
const MOST_BYTES = 64 * 2 ** 20

/**
 * Bounds the memory of all recorders together. Above the bound, the limiters that have decided nothing for the longest time
 * lose their records. The references are weak, because a limiter that nobody uses must not stay in memory.
 */
export class RecordBudget {
  readonly #mostBytes: number
  /** The bytes of each recorder. The first one has decided nothing for the longest time. */
  readonly #bytesOf = new Map<WeakRef<BoundedRecords>, number>()
  #bytes = 0

  constructor(mostBytes: number = MOST_BYTES) {
    this.#mostBytes = mostBytes
  }

  /** Notes that a limiter has just decided, and that its records take more bytes. */
  grow(records: WeakRef<BoundedRecords>, bytes: number): void {
    const before = this.#bytesOf.get(records) ?? 0
    this.#bytesOf.delete(records)
    this.#bytesOf.set(records, before + bytes)
    this.#bytes += bytes
    if (this.#bytes > this.#mostBytes) this.#shrink(records)
  }

  /** Notes that records take fewer bytes, or by default none. */
  release(records: WeakRef<BoundedRecords>, bytes: number | undefined = this.#bytesOf.get(records)): void {
    const before = this.#bytesOf.get(records)
    if (before === undefined || bytes === undefined) return
    this.#bytes -= bytes
    if (bytes < before) this.#bytesOf.set(records, before - bytes)
    else this.#bytesOf.delete(records)
  }

  /** Deletes the oldest records, but not those of the latest limiter, whose own bound is smaller. */
  #shrink(latest: WeakRef<BoundedRecords>): void {
    for (const oldest of this.#bytesOf.keys()) {
      if (this.#bytes <= this.#mostBytes || oldest === latest) return
      this.release(oldest)
      oldest.deref()?.forget()
    }
  }
}

/** The budget of this process. */
export const PROCESS_BUDGET = new RecordBudget()
