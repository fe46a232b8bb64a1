import { LogError } from "../log-error.ts"
import type { FieldMap, LogFormat } from "./formats/format.ts"
import { detectFormat } from "./formats/formats.ts"
import { lineSplitter } from "./lines.ts"
import { type LogSource, nextChunk } from "./log-bytes.ts"
import { shortened } from "./summary.ts"

/** Number of lines from which the format is detected. */
const FIRST_LINES = 20
/** Number of bytes that are searched if the first lines contain no request, because an app may first log its start. */
const MOST_FIRST_BYTES = 1024 * 1024

/** A file whose first lines have been read. */
export interface StartedFile {
  readonly source: LogSource
  readonly index: number
  readonly format: LogFormat
  /** The first line, for recognizing another file with the same lines. */
  readonly firstLine: string | undefined
  /** Time of the earliest request in the first lines, in epoch milliseconds. */
  readonly fromMs: number
  /** Coarsest resolution of the file's times, in milliseconds. */
  readonly resolutionMs: number
  /** The chunks that were already read from a pipe, which cannot be read again, and the rest of the pipe. */
  readonly opened: { readonly chunks: readonly Buffer[]; readonly rest: AsyncIterator<Buffer> } | undefined
}

/**
 * Reads the first lines of a file and detects its format, unless the format is given. Resolves with undefined if the
 * file contains only empty lines. Closes the file afterwards, so that any number of files can be given. Rejects with
 * LogError if the format is not known.
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
      const chunk = await nextChunk(rest)
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
  // Throws if the format lacks a source that `map` names.
  format.open(index, map)
  return {
    source,
    index,
    format,
    firstLine: lines[0],
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

function unknownFormat(name: string, lines: readonly string[]): LogError {
  const [first = ""] = lines
  const advice = first.trimStart().startsWith("{")
    ? "say where the fields of these JSON lines are, such as --map time=ts --map ip=client.addr"
    : "give the log_format line of nginx or the LogFormat line of Apache with --format"
  return new LogError(`${name}: the format of its lines is not known: ${advice}\n${shortened(first)}`)
}

/** Closes the pipes of files that are not read. An open pipe would keep the process alive. */
export async function closeFiles(files: readonly StartedFile[]): Promise<void> {
  for (const { opened } of files) await opened?.rest.return?.(undefined)
}
