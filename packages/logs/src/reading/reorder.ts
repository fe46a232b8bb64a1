import type { OpenRecord } from "./record.ts"

const SECOND_MS = 1_000
/**
 * Maximum number of records that wait to be sorted. Above it, the oldest second is released early, so that memory
 * stays bounded.
 */
const MOST_HELD = 1_000_000

/** The numbers of records that sorting has moved or could not move. */
export interface OrderCounts {
  reordered: number
  reorderedByMs: number
  late: number
}

/** Sorts records that arrive almost in order. */
export interface Reorder {
  /** Adds the record of the next line. */
  add(record: OpenRecord): void
  /** Returns the sorted records of all seconds to which no later line can belong. */
  release(): OpenRecord[]
  /** Returns all remaining records, sorted. */
  end(): OpenRecord[]
}

interface Second {
  readonly second: number
  readonly records: OpenRecord[]
  isSorted: boolean
}

/**
 * Stores records in buckets of one second until a line is `reorderMs` later than the end of the bucket. Records with
 * equal times keep the order of their lines. A record that arrives after the release of its bucket gets the time of
 * the previous record, and counts as late. The result depends only on the lines, not on when `release` is called.
 */
export function reorder(reorderMs: number, counts: OrderCounts): Reorder {
  /** The buckets in order of time. There is at most one bucket for each second of the reorder time. */
  const buckets: Second[] = []
  let newest: Second | undefined
  let held = 0
  let latestMs = Number.NEGATIVE_INFINITY
  /** The time of a line at which the next bucket is complete. */
  let dueMs = Number.POSITIVE_INFINITY
  let readyMs = Number.NEGATIVE_INFINITY
  let ready: OpenRecord[] = []

  function bucketOf(second: number): Second {
    if (newest !== undefined && newest.second === second) return newest
    let at = buckets.length
    while (at > 0 && (buckets[at - 1] as Second).second > second) at--
    const found = buckets[at - 1]
    if (found?.second === second) return found
    const made: Second = { second, records: [], isSorted: true }
    buckets.splice(at, 0, made)
    newest = buckets.at(-1)
    dueMs = endOf(buckets[0] as Second) + reorderMs
    return made
  }

  function completeFirst(): void {
    const { records, isSorted } = buckets.shift() as Second
    if (!isSorted) records.sort((a, b) => a.atMs - b.atMs)
    held -= records.length
    readyMs = (records.at(-1) as OpenRecord).atMs
    if (ready.length === 0) ready = records
    else for (const record of records) ready.push(record)
    const [next] = buckets
    if (next === undefined) newest = undefined
    dueMs = next === undefined ? Number.POSITIVE_INFINITY : endOf(next) + reorderMs
  }

  return {
    add(record) {
      if (record.atMs < readyMs) {
        counts.late++
        record.atMs = readyMs
        ready.push(record)
        return
      }
      const bucket = bucketOf(Math.floor(record.atMs / SECOND_MS))
      const last = bucket.records.at(-1)
      if (last !== undefined && last.atMs > record.atMs) bucket.isSorted = false
      bucket.records.push(record)
      held++
      if (record.atMs >= latestMs) latestMs = record.atMs
      else {
        counts.reordered++
        counts.reorderedByMs = Math.max(counts.reorderedByMs, latestMs - record.atMs)
      }
      while (latestMs >= dueMs) completeFirst()
      if (held > MOST_HELD) completeFirst()
    },
    release() {
      const released = ready
      ready = []
      return released
    },
    end() {
      while (buckets.length > 0) completeFirst()
      return this.release()
    },
  }
}

function endOf({ second }: Second): number {
  return (second + 1) * SECOND_MS
}
