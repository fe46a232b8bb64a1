import type { LogFile, LogSummary } from "./log.ts"
import type { OpenRecord } from "./record.ts"
import type { OrderCounts } from "./reorder.ts"

type Open<T> = { -readonly [Member in keyof T]: T[Member] }

/** A summary whose numbers still change. */
export type OpenSummary = Omit<Open<LogSummary>, "files" | "unparsedExamples"> &
  OrderCounts & {
    readonly files: Open<LogFile>[]
    readonly unparsedExamples: { file: string; line: number; text: string }[]
  }

const MOST_EXAMPLES = 5
const LONGEST_EXAMPLE = 120

/** Returns the summary of files before anything has been read. */
export function emptySummary(names: readonly string[]): OpenSummary {
  return {
    files: names.map((name) => ({ name, format: undefined, lines: 0 })),
    lines: 0,
    requests: 0,
    unparsed: 0,
    unparsedExamples: [],
    skipped: 0,
    reordered: 0,
    reorderedByMs: 0,
    late: 0,
    tooManyRequests: 0,
    resolutionMs: 1,
    fromMs: undefined,
    toMs: undefined,
    bytes: 0,
    allBytes: undefined,
  }
}

/** Counts a line that does not match the format of its file. */
export function countUnparsed(summary: OpenSummary, file: string, line: number, text: string): void {
  summary.unparsed++
  if (summary.unparsedExamples.length < MOST_EXAMPLES) {
    summary.unparsedExamples.push({ file, line, text: shortened(text) })
  }
}

/**
 * Counts and returns the requests whose status is not in `without`. Counts the other requests as skipped. Statuses
 * are checked last, because the status may come from a later line.
 */
export function countRequests(
  summary: OpenSummary,
  records: OpenRecord[],
  without: ReadonlySet<number>,
): OpenRecord[] {
  const kept =
    without.size === 0
      ? records
      : records.filter(({ status }) => status === undefined || !without.has(status))
  summary.skipped += records.length - kept.length
  summary.requests += kept.length
  for (const { status, live } of kept)
    if (status === 429 && live?.allowed !== false) summary.tooManyRequests++
  summary.fromMs ??= kept[0]?.atMs
  summary.toMs = kept.at(-1)?.atMs ?? summary.toMs
  return kept
}

/** Returns the beginning of a line for a message. */
export function shortened(text: string): string {
  return text.length > LONGEST_EXAMPLE ? `${text.slice(0, LONGEST_EXAMPLE)}…` : text
}
