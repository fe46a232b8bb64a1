import { UsageError } from "../usage-error.ts"
import { type FieldMap, type LogFormat, SKIPPED } from "./formats/format.ts"
import { detectFormat } from "./formats/formats.ts"
import { lineSplitter } from "./lines.ts"
import type { LogSource } from "./log-bytes.ts"
import type { OpenRecord } from "./record.ts"
import { reorder } from "./reorder.ts"
import { countUnparsed, type OpenSummary, shortened } from "./summary.ts"

/** Lines by which the format is detected. */
const FIRST_LINES = 20
/** Bytes that are searched if no request is in the first lines. An app may log its start first. */
const MOST_FIRST_BYTES = 1024 * 1024

/** A file whose first lines have been read. */
export interface StartedFile {
  readonly source: LogSource
  readonly index: number
  readonly format: LogFormat
  /** Time of the earliest request in the first lines, in epoch milliseconds. */
  readonly fromMs: number
  /** Coarsest resolution of its times, in milliseconds. */
  readonly resolutionMs: number
  /** Bytes that were read from a pipe and cannot be read again, and the rest of the pipe. */
  readonly opened: { readonly chunks: readonly Buffer[]; readonly rest: AsyncIterator<Buffer> } | undefined
}

/**
 * Reads the first lines of a file and detects its format, unless it is given. Resolves with undefined if the file has
 * only empty lines. A file is closed again, so that any number of files can be given. Rejects with UsageError if the format is not
 * known.
 */
export async function startFile(
  source: LogSource,
  index: number,
  given: LogFormat | undefined,
  map: FieldMap,
  onBytes: (count: number) => void,
): Promise<StartedFile | undefined> {
  const isPipe = source.size === undefined
  const rest = source.read(isPipe ? onBytes : () => {})[Symbol.asyncIterator]()
  const chunks: Buffer[] = []
  const lines: string[] = []
  const splitter = lineSplitter("latin1")
  const onLine = (text: string, isTooLong: boolean): void => {
    if (text !== "" && !isTooLong) lines.push(text)
  }
  let size = 0
  let isEnd = false
  const readMore = async (isEnough: () => boolean): Promise<void> => {
    while (!isEnd && size < MOST_FIRST_BYTES && !isEnough()) {
      const chunk = await nextOf(rest)
      if (chunk === undefined) {
        isEnd = true
        splitter.end(onLine)
        return
      }
      chunks.push(chunk)
      size += chunk.length
      splitter.push(chunk, onLine)
    }
  }
  await readMore(() => lines.length >= FIRST_LINES)
  let format = given ?? detectFormat(lines.slice(0, FIRST_LINES), map)
  let times = format === undefined ? [] : timesOf(format, lines, map)
  if (times.length === 0 && lines.length > 0) {
    await readMore(() => false)
    format ??= detectFormat(lines, map)
    times = format === undefined ? [] : timesOf(format, lines, map)
  }
  if (!isPipe) await rest.return?.(undefined)
  if (lines.length === 0 && isEnd) return undefined
  if (format === undefined) {
    await rest.return?.(undefined)
    throw unknownFormat(source.name, lines)
  }
  // Throws if a source of `map` is not in the format.
  format.open(index, map)
  return {
    source,
    index,
    format,
    fromMs: times.reduce((lowest, each) => Math.min(lowest, each), Number.POSITIVE_INFINITY),
    resolutionMs:
      format.resolutionMs ?? (times.length > 0 && times.every((each) => each % 1_000 === 0) ? 1_000 : 1),
    opened: isPipe ? { chunks, rest } : undefined,
  }
}

function timesOf(format: LogFormat, lines: readonly string[], map: FieldMap): readonly number[] {
  const reader = format.open(0, map)
  return lines.flatMap((line, at) => {
    const result = reader.read(line, at + 1)
    return typeof result === "object" ? [result.atMs] : []
  })
}

function unknownFormat(name: string, lines: readonly string[]): UsageError {
  const [first = ""] = lines
  const advice = first.trimStart().startsWith("{")
    ? "say where the fields of these JSON lines are, such as --map time=ts --map ip=client.addr"
    : "give the log_format line of nginx or the LogFormat line of Apache with --format"
  return new UsageError(`${name}: the format of its lines is not known: ${advice}\n${shortened(first)}`)
}

/** Closes the pipes of files that are not read. An open pipe would keep the process alive. */
export async function closeFiles(files: readonly StartedFile[]): Promise<void> {
  for (const { opened } of files) await opened?.rest.return?.(undefined)
}

/** Reads the records of a file, sorted. */
export interface FileReader {
  readonly file: StartedFile
  /** Resolves with the records of the next seconds, at least one. Resolves with undefined at the end of the file. */
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
  let isEnd = false

  function onLine(text: string, isTooLong: boolean): void {
    const number = ++counts.lines
    summary.lines++
    const result = isTooLong ? undefined : text === "" ? SKIPPED : reader.read(text, number)
    if (result === undefined) countUnparsed(summary, source.name, number, text)
    else if (result === SKIPPED) summary.skipped++
    else order.add(result)
  }

  return {
    file,
    async next() {
      while (!isEnd) {
        const chunk = first.shift() ?? (await nextOf(rest))
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

async function nextOf(chunks: AsyncIterator<Buffer>): Promise<Buffer | undefined> {
  const { value, done } = await chunks.next()
  return done === true ? undefined : value
}
