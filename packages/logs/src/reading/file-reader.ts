import { type FieldMap, SKIPPED } from "./formats/format.ts"
import { lineSplitter } from "./lines.ts"
import { nextChunk } from "./log-bytes.ts"
import type { OpenRecord } from "./record.ts"
import { reorder } from "./reorder.ts"
import type { StartedFile } from "./start-file.ts"
import { countUnparsed, type OpenSummary } from "./summary.ts"
import { isArrival } from "./times.ts"

/** Reads the records of a file in order of time. */
export interface FileReader {
  readonly file: StartedFile
  /**
   * Resolves with at least one record, and with all records of the same seconds. Resolves with undefined at the end
   * of the file.
   */
  next(): Promise<OpenRecord[] | undefined>
  /** Closes the file. */
  close(): Promise<void>
}

/** Opens a file for reading, and counts its lines in `summary`. */
export function openFile(
  file: StartedFile,
  map: FieldMap,
  reorderMs: number,
  summary: OpenSummary,
  onBytes: (count: number) => void,
): FileReader {
  const { source, index, format, opened } = file
  const counts = summary.files[index] as OpenSummary["files"][number]
  const reader = format.open(index, map)
  const splitter = lineSplitter(format.encoding)
  const order = reorder(reorderMs, summary)
  const first = [...(opened?.chunks ?? [])]
  const rest = opened?.rest ?? source.read(onBytes)[Symbol.asyncIterator]()
  const nowMs = Date.now()
  let isEnd = false

  function onLine(text: string, isTooLong: boolean): void {
    const number = ++counts.lines
    summary.lines++
    const result = isTooLong ? undefined : text === "" ? SKIPPED : reader.read(text, number)
    const isValid = result === SKIPPED || (result !== undefined && isArrival(result.atMs, nowMs))
    if (!isValid || result === undefined) countUnparsed(summary, source.name, number, text)
    else if (result === SKIPPED) summary.skipped++
    else order.add(result)
  }

  return {
    file,
    async next() {
      while (!isEnd) {
        const chunk = first.shift() ?? (await nextChunk(rest))
        if (chunk === undefined) {
          isEnd = true
          splitter.end(onLine)
          const last = order.end()
          return last.length === 0 ? undefined : last
        }
        splitter.push(chunk, onLine)
        const records = order.release()
        if (records.length > 0) return records
      }
      return undefined
    },
    async close() {
      await rest.return?.(undefined)
    },
  }
}
