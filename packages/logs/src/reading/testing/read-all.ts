import type { LogRecord, LogSummary, ReadLogOptions } from "../log.ts"
import { readLogs } from "../read-logs.ts"

/** The records and the summary of a log. */
export interface ReadLog {
  readonly records: readonly LogRecord[]
  /** The same records in the arrays in which they were returned. */
  readonly lists: readonly (readonly LogRecord[])[]
  readonly summary: LogSummary
}

/** Reads a log from standard input. If `input` is an array, each element is one chunk. */
export function readInput(
  given: string | Uint8Array | readonly Uint8Array[],
  options: ReadLogOptions = {},
): Promise<ReadLog> {
  const chunks =
    typeof given === "string" ? [Buffer.from(given)] : given instanceof Uint8Array ? [given] : given
  return readAll(["-"], options, chunks)
}

/** Reads log files, and standard input for "-". */
export async function readAll(
  paths: readonly string[],
  options: ReadLogOptions = {},
  input: readonly Uint8Array[] = [],
): Promise<ReadLog> {
  async function* stdin(): AsyncGenerator<Uint8Array> {
    yield* input
  }
  const logs = readLogs(paths, options, { stdin: stdin() })
  const lists: (readonly LogRecord[])[] = []
  for await (const list of logs) lists.push([...list])
  return { records: lists.flat(), lists, summary: logs.summary }
}

/** Returns the members of a record that come from its line and have a value. */
export function facts({ onlyFields, file, line, ...members }: LogRecord): Record<string, unknown> {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined))
}
