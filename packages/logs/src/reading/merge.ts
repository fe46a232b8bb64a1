import type { FileReader } from "./file-reader.ts"
import type { OpenRecord } from "./record.ts"
import type { OrderCounts } from "./reorder.ts"
import { closeFiles, type StartedFile } from "./start-file.ts"

const SECOND_MS = 1_000

interface MergedFile {
  readonly reader: FileReader
  /** Records that were read, but not yet returned. The array is empty at the end of the file. */
  pending: OpenRecord[]
}

/**
 * Merges the records of several files by time, in arrays of whole seconds. Opens a file only when the other files
 * reach the time of its first request, so consecutive files are not open at the same time. Closes all files when the
 * caller stops.
 */
export async function* mergeFiles(
  files: readonly StartedFile[],
  reorderMs: number,
  open: (file: StartedFile) => FileReader,
  counts: OrderCounts,
): AsyncGenerator<OpenRecord[]> {
  const waiting = [...files].sort((a, b) => a.fromMs - b.fromMs || a.index - b.index)
  let active: MergedFile[] = []
  let lastMs = Number.NEGATIVE_INFINITY
  try {
    for (;;) {
      if (active.length === 0 && waiting[0] !== undefined) {
        active.push({ reader: open(waiting.shift() as StartedFile), pending: [] })
      }
      active = await filled(active)
      if (active.length === 0) {
        if (waiting.length === 0) return
        continue
      }
      let wholeMs = wholeUntil(active)
      // The first lines of a file may be out of order, so a file may contain an earlier request than `fromMs`.
      while (waiting[0] !== undefined && waiting[0].fromMs - reorderMs <= wholeMs) {
        active.push({ reader: open(waiting.shift() as StartedFile), pending: [] })
        active.sort((a, b) => a.reader.file.index - b.reader.file.index)
        active = await filled(active)
        wholeMs = wholeUntil(active)
      }
      const records = takeUntil(active, wholeMs)
      for (const record of records) {
        if (record.atMs >= lastMs) break
        record.atMs = lastMs
        counts.late++
      }
      lastMs = records.at(-1)?.atMs ?? lastMs
      yield records
    }
  } finally {
    for (const { reader } of active) await reader.close()
    await closeFiles(waiting)
  }
}

/** Reads more records of files whose records have all been returned. Omits files that have ended. */
async function filled(active: readonly MergedFile[]): Promise<MergedFile[]> {
  const kept: MergedFile[] = []
  for (const each of active) {
    if (each.pending.length === 0) each.pending = (await each.reader.next()) ?? []
    if (each.pending.length > 0) kept.push(each)
  }
  return kept
}

/** Returns the end of the last second that every open file has read completely. */
function wholeUntil(active: readonly MergedFile[]): number {
  return active.reduce((lowest, { pending }) => {
    const lastMs = (pending.at(-1) as OpenRecord).atMs
    return Math.min(lowest, (Math.floor(lastMs / SECOND_MS) + 1) * SECOND_MS)
  }, Number.POSITIVE_INFINITY)
}

/**
 * Removes the records before a time from all files, and returns them sorted. Records with equal times stay in the
 * order of their files.
 */
function takeUntil(active: readonly MergedFile[], untilMs: number): OpenRecord[] {
  const lists = active.map((each) => {
    const { pending } = each
    if ((pending.at(-1) as OpenRecord).atMs < untilMs) {
      each.pending = []
      return pending
    }
    const count = countBefore(pending, untilMs)
    each.pending = pending.slice(count)
    return pending.slice(0, count)
  })
  const [only = []] = lists
  return lists.length === 1 ? only : lists.flat().sort((a, b) => a.atMs - b.atMs)
}

function countBefore(records: readonly OpenRecord[], untilMs: number): number {
  let low = 0
  let high = records.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((records[middle] as OpenRecord).atMs < untilMs) low = middle + 1
    else high = middle
  }
  return low
}
