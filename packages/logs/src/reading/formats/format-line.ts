import { LogError } from "../../log-error.ts"
import { addressIn } from "../addresses.ts"
import { quoteFrom, unescaped } from "../escapes.ts"
import { type FieldSources, fieldSources } from "../field-sources.ts"
import { fieldSet } from "../logged-fields.ts"
import { type OpenRecord, presentValue, statusOf } from "../record.ts"
import { isToken, relativeTarget, requestLine } from "../targets.ts"
import { type FieldMap, type LineReader, type LineResult, SKIPPED } from "./format.ts"
import { type FormatPart, type SegmentReader, segmentReader, type Variable } from "./segment.ts"

/** The parsed format line of a server. */
export interface FormatLine {
  /** Name of the format, for messages. */
  readonly name: string
  readonly parts: readonly FormatPart[]
  /** True if a log line may end with values that the format does not describe. */
  readonly allowsMore?: boolean | undefined
}

/**
 * Returns a reader of lines in a format. Throws LogError if the format has no time, or if `map` names a variable that
 * the format lacks.
 *
 * Servers escape values, so a client cannot write a quote. Therefore, the line is first split at its quotes, so that
 * a client can only change the segment that contains its own value.
 */
export function formatLineReader(format: FormatLine, file: number, map: FieldMap): LineReader {
  const { variables, segments } = segmentsOf(format)
  const sources = fieldSources(variables, map, format.name)
  const onlyFields = fieldSet(sources.logged)
  const values: string[] = variables.map(() => "")
  return {
    read(line, number): LineResult {
      if (!readSegments(line, segments, values, format.allowsMore === true)) return undefined
      return recordFrom(values, sources, onlyFields, file, number)
    },
  }
}

/** Returns the variables and segments of a format line. Throws LogError if lines of the format cannot be read. */
export function segmentsOf({ name, parts }: FormatLine): {
  readonly variables: readonly Variable[]
  readonly segments: readonly SegmentReader[]
} {
  if (parts.some((part) => typeof part === "string" && part.includes("\n")))
    throw new LogError(
      `The format ${JSON.stringify(name)} cannot be read: it has a line break (\\n), so a request is several lines; log one line for each request`,
    )
  const variables: Variable[] = []
  const lists: FormatPart[][] = [[]]
  for (const part of parts) {
    const list = lists.at(-1) as FormatPart[]
    if (typeof part !== "string") {
      variables.push(part)
      list.push(part)
      continue
    }
    const [first = "", ...rest] = part.split('"')
    if (first !== "") list.push(first)
    for (const literal of rest) lists.push(literal === "" ? [] : [literal])
  }
  return { variables, segments: lists.map((list) => segmentReader(list, variables, name)) }
}

/** Reads the values of a line into `values`. Returns false if the line does not match the segments of the format. */
function readSegments(
  line: string,
  segments: readonly SegmentReader[],
  values: string[],
  allowsMore: boolean,
): boolean {
  let from = 0
  for (let index = 0; index < segments.length; index++) {
    const segment = segments[index] as SegmentReader
    const isLast = index === segments.length - 1
    const end = isLast && !allowsMore ? line.length : segmentEnd(line, from, segment)
    if (end === -1 && !isLast) return false
    const to = end === -1 ? line.length : end
    if (isLast && !allowsMore && quoteFrom(line, from) !== -1) return false
    if (
      !segment.read(isLast && allowsMore ? firstWords(line, from, to, segment) : line.slice(from, to), values)
    )
      return false
    from = to + 1
  }
  return true
}

/** Returns the part of the last segment that the format describes, without the values that a server appended. */
function firstWords(line: string, from: number, to: number, { spaces }: SegmentReader): string {
  let end = from - 1
  for (let count = 0; count <= spaces; count++) {
    end = line.indexOf(" ", end + 1)
    if (end === -1 || end > to) return line.slice(from, to)
  }
  return line.slice(from, end)
}

/** Returns the position of the quote that ends a segment; -1 if there is no such quote. */
function segmentEnd(line: string, from: number, { afterEmptyUser }: SegmentReader): number {
  const quote = quoteFrom(line, from)
  if (quote === -1 || afterEmptyUser === undefined) return quote
  // Apache writes "" for an empty user name.
  return line.startsWith(afterEmptyUser, quote + 1) ? quoteFrom(line, quote + 2) : quote
}

function recordFrom(
  values: readonly string[],
  sources: FieldSources,
  onlyFields: ReadonlySet<string>,
  file: number,
  line: number,
): OpenRecord | typeof SKIPPED | undefined {
  const atMs = sources.timeMs(values)
  if (Number.isNaN(atMs)) return undefined
  const address = sources.address === undefined ? undefined : addressIn(values[sources.address])
  if (address === null) return undefined
  const first =
    sources.request === undefined ? undefined : requestLine(valueAt(values, sources.request) ?? "")
  const method = first?.method ?? valueAt(values, sources.method)
  const target = valueAt(values, sources.target)
  // The server did not understand the request, so the app has not seen it.
  if (sources.request !== undefined && first === undefined) return SKIPPED
  if (sources.method !== undefined && !isToken(method ?? "", 0, method?.length ?? 0)) return SKIPPED
  if (sources.target !== undefined && target === undefined) return SKIPPED
  return {
    atMs,
    method,
    url: first?.url ?? (target === undefined ? undefined : relativeTarget(target)),
    status: statusOf(valueAt(values, sources.status)),
    remoteAddress: address,
    headers: pick(sources.headers, values),
    cookies: pick(sources.cookies, values),
    named: pick(sources.named, values),
    live: undefined,
    onlyFields,
    file,
    line,
  }
}

function valueAt(values: readonly string[], index: number | undefined): string | undefined {
  const text = index === undefined ? undefined : presentValue(values[index])
  return text === undefined || text === '""' ? undefined : unescaped(text)
}

/** Returns an object with these values; undefined if all values are missing. */
function pick(
  list: readonly (readonly [name: string, index: number])[],
  values: readonly string[],
): Record<string, string | undefined> | undefined {
  if (list.length === 0) return undefined
  const picked: Record<string, string | undefined> = {}
  for (const [name, index] of list) picked[name] = valueAt(values, index)
  return picked
}
