import { problemAt, requireOptions } from "@sluice/core/kit"
import { LogError } from "../log-error.ts"
import { READ_CHECKS, texts } from "../option-checks.ts"
import { checkFieldMap } from "./field-map.ts"
import { openFile } from "./file-reader.ts"
import type { LogFormat } from "./formats/format.ts"
import { formatOf } from "./formats/formats.ts"
import type { LogRecord, Logs, ReadLogOptions } from "./log.ts"
import { findSource, type LogInput, type LogSource } from "./log-bytes.ts"
import { mergeFiles } from "./merge.ts"
import { rejectSameLines } from "./same-lines.ts"
import { closeFiles, type StartedFile, startFile } from "./start-file.ts"
import { countRequests, emptySummary, type OpenSummary } from "./summary.ts"

const REORDER_MS = 10_000

/**
 * Reads logs, or the standard input of `io` for "-", and returns their requests in order of time. Each array contains
 * all requests of one or more seconds, so no second is split between two arrays. Exceptions are a second with more
 * than a million requests, and late lines.
 *
 * Throws InvalidOptionError if an option is misspelled or has a value of the wrong type, and LogError if another option is
 * invalid. The iteration rejects with LogError if a file cannot be read, or if its format is not known.
 * @example
 * ```ts
 * import { readLogs } from "@sluice/logs"
 *
 * export async function countPosts(paths: readonly string[]): Promise<number> {
 *   let posts = 0
 *   for await (const records of readLogs(paths))
 *     for (const { method } of records) if (method === "POST") posts++
 *   return posts
 * }
 * ```
 */
export function readLogs(
  paths: readonly string[],
  options: ReadLogOptions = {},
  io: Readonly<Record<"stdin", AsyncIterable<Uint8Array>>> = process,
): Logs {
  requireOptions("readLogs", options, READ_CHECKS, problemAt("paths", paths, texts))
  const { format, map = {}, reorderMs = REORDER_MS, withoutStatus = [] } = options
  const repeated = paths.find((path, at) => paths.indexOf(path) !== at)
  if (repeated !== undefined) {
    throw new LogError(
      `${nameOf(repeated)} is given twice: leave out one of them, or its requests count twice`,
    )
  }
  checkFieldMap(map)
  const given = format === undefined ? undefined : formatOf(format)
  // Throws if the format lacks a source that `map` names.
  given?.open(0, map)
  const summary = emptySummary(paths.map(nameOf))
  const without = new Set(withoutStatus)
  const onBytes = (count: number): void => {
    summary.bytes += count
  }

  async function* records(): AsyncGenerator<readonly LogRecord[]> {
    const files = await startFiles(paths, given, map, summary, onBytes, io)
    const open = (file: StartedFile) => openFile(file, map, reorderMs, summary, onBytes)
    for await (const list of mergeFiles(files, reorderMs, open, summary)) {
      const kept = countRequests(summary, list, without)
      if (kept.length > 0) yield kept
    }
  }

  return { summary, [Symbol.asyncIterator]: () => records() }
}

async function startFiles(
  paths: readonly string[],
  given: LogFormat | undefined,
  map: Readonly<Record<string, string>>,
  summary: OpenSummary,
  onBytes: (count: number) => void,
  io: LogInput,
): Promise<readonly StartedFile[]> {
  const sources: LogSource[] = []
  for (const path of paths) sources.push(await findSource(path, io))
  summary.allBytes = sources.reduce<number | undefined>(
    (sum, { size }) => (sum === undefined || size === undefined ? undefined : sum + size),
    0,
  )
  const files: StartedFile[] = []
  try {
    for (const [index, source] of sources.entries()) {
      const file = await startFile(source, index, given, map, onBytes)
      if (file === undefined) summary.bytes += source.size ?? 0
      else files.push(file)
    }
    await rejectSameLines(files)
  } catch (error) {
    await closeFiles(files)
    throw error
  }
  for (const { index, format, resolutionMs } of files) {
    const counts = summary.files[index]
    if (counts !== undefined) counts.format = format.name
    summary.resolutionMs = Math.max(summary.resolutionMs, resolutionMs)
  }
  return files
}

function nameOf(path: string): string {
  return path === "-" ? "standard input" : path
}
