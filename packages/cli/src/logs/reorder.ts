import type { OpenRecord } from "./record.ts"

const SECOND_MS = 1_000
/** Most records that are held back. Beyond it, the oldest second is released early, so that memory stays bounded. */
const MOST_HELD = 1_000_000

/** What sorting has found. */
export interface OrderCounts {
  reordered: number
  reorderedByMs: number
  late: number
}

/** Sorts records that arrive almost in order. */
export interface Reorder {
  /** Adds the record of the next line. */
  add(record: OpenRecord): void
  /** Returns all seconds that no later line may still belong to, sorted. */
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
 * Keeps records in buckets of one second until a line is `reorderMs` later than the end of the bucket. Records with
 * equal times keep the order of their lines. A record that comes later than that gets the time of the last released
 * record, and counts as late.
 */
export function reorder(reorderMs: number, counts: OrderCounts): Reorder {
  /** Ordered by time. There are only as many as seconds in the reorder time. */
  const buckets: Second[] = []
  let newest: Second | undefined
  let held = 0
  let latestMs = Number.NEGATIVE_INFINITY
  let releasedMs = Number.NEGATIVE_INFINITY
  let late: OpenRecord[] = []

  function bucketOf(second: number): Second {
    if (newest !== undefined && newest.second === second) return newest
    let at = buckets.length
    while (at > 0 && (buckets[at - 1] as Second).second > second) at--
    const found = buckets[at - 1]
    if (found?.second === second) return found
    const made: Second = { second, records: [], isSorted: true }
    buckets.splice(at, 0, made)
    newest = buckets.at(-1)
    return made
  }

  function take(count: number): OpenRecord[] {
    const taken = buckets.splice(0, count)
    if (buckets.length === 0) newest = undefined
    for (const { records, isSorted } of taken) {
      if (!isSorted) records.sort((a, b) => a.atMs - b.atMs)
      held -= records.length
    }
    const lists = taken.map(({ records }) => records)
    if (late.length > 0) {
      // These have the time of the last record, so they come first.
      lists.unshift(late)
      held -= late.length
      late = []
    }
    const released = lists.length === 1 ? (lists[0] as OpenRecord[]) : lists.flat()
    releasedMs = released.at(-1)?.atMs ?? releasedMs
    return released
  }

  return {
    add(record) {
      held++
      if (record.atMs < releasedMs) {
        counts.late++
        record.atMs = releasedMs
        late.push(record)
        return
      }
      addTo(bucketOf(Math.floor(record.atMs / SECOND_MS)), record)
      if (record.atMs >= latestMs) {
        latestMs = record.atMs
      } else {
        counts.reordered++
        counts.reorderedByMs = Math.max(counts.reorderedByMs, latestMs - record.atMs)
      }
    },
    release() {
      let count = 0
      while (
        count < buckets.length &&
        ((buckets[count] as Second).second + 1) * SECOND_MS <= latestMs - reorderMs
      ) {
        count++
      }
      if (count === 0 && held > MOST_HELD) count = 1
      return count === 0 && late.length === 0 ? [] : take(count)
    },
    end: () => take(buckets.length),
  }
}

function addTo(bucket: Second, record: OpenRecord): void {
  const last = bucket.records.at(-1)
  if (last !== undefined && last.atMs > record.atMs) bucket.isSorted = false
  bucket.records.push(record)
}
