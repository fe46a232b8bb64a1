import { addressIn } from "../addresses.ts"
import { mappedNames, mapTarget } from "../field-map.ts"
import { fieldSet } from "../logged-fields.ts"
import { type OpenRecord, recordOf } from "../record.ts"
import { relativeTarget } from "../targets.ts"
import { valueTime } from "../times.ts"
import { type FieldMap, type LineReader, type LogFormat, SKIPPED } from "./format.ts"
import {
  headersOf,
  type JsonObject,
  liveVerdict,
  parseObject,
  scalarOf,
  statusIn,
  textOf,
  valueAt,
} from "./json-value.ts"

/** The facts about a request in a known kind of JSON line. Values are not checked yet. */
export interface JsonRequest {
  /** When the request arrived, in epoch milliseconds. NaN if the time is invalid. */
  readonly atMs: number
  readonly method?: unknown
  readonly url?: unknown
  readonly status?: unknown
  /** The client's address, with or without a port. */
  readonly address?: unknown
  /** The object with all headers, if the line contains one. */
  readonly headers?: JsonObject | undefined
  /** Single headers, if the line contains no object with all headers. Names are in lower case. */
  readonly someHeaders?: Readonly<Record<string, unknown>> | undefined
}

/** A known kind of JSON line. */
export interface JsonLines {
  readonly name: string
  /** Fields that every request has. */
  readonly names: readonly string[]
  readonly hasQuery: boolean
  /** Returns the request of a line; undefined if the line is not a request. */
  request(line: JsonObject): JsonRequest | undefined
}

/** Returns the format of JSON lines of a known kind. */
export function jsonFormat(lines: JsonLines): LogFormat {
  return {
    name: lines.name,
    encoding: "utf8",
    open(file, map) {
      const toRecord = jsonRecords(lines, file, map)
      return objectReader((object, number) => {
        const request = lines.request(object)
        return request === undefined ? SKIPPED : toRecord(object, request, number)
      }, Object.keys(map).length > 0)
    },
  }
}

/**
 * Returns a reader that parses each line as JSON. `isExact` preserves long numbers, which fields of `--map` may
 * contain.
 */
export function objectReader(
  read: (object: JsonObject, number: number) => ReturnType<LineReader["read"]>,
  isExact: boolean,
): LineReader {
  return {
    read(line, number) {
      const object = parseObject(line, isExact)
      return object === undefined ? undefined : read(object, number)
    },
  }
}

/** A function that creates the record of a request from a JSON line, or returns undefined if a value is invalid. */
export type ToRecord = (object: JsonObject, request: JsonRequest, number: number) => OpenRecord | undefined

/** Returns a function that turns requests into records, with the fields of `map`. */
export function jsonRecords(
  { names, hasQuery }: Pick<JsonLines, "names" | "hasQuery">,
  file: number,
  map: FieldMap,
): ToRecord {
  const entries = Object.entries(map).map(([field, source]) => ({ target: mapTarget(field), source }))
  const sourceOf = (kind: string): string | undefined =>
    entries.find(({ target }) => target.kind === kind)?.source
  const [time, ip, method, url, status] = ["time", "ip", "method", "url", "status"].map(sourceOf)
  const own = (kind: string, object: JsonObject): Record<string, string | undefined> | undefined => {
    const found = entries.flatMap(({ target, source }) =>
      target.kind === kind && "name" in target
        ? [[target.name, scalarOf(valueAt(object, source))] as const]
        : [],
    )
    return found.length === 0 ? undefined : Object.fromEntries(found)
  }
  const fieldsOf = rememberedFields([...names, ...mappedNames(map)], hasQuery || url !== undefined)

  return (object, request, number) => {
    const atMs = time === undefined ? request.atMs : valueTime(valueAt(object, time))
    const address = addressIn(ip === undefined ? textOf(request.address) : scalarOf(valueAt(object, ip)))
    const target = textOf(url === undefined ? request.url : valueAt(object, url))
    if (Number.isNaN(atMs) || address === null) return undefined
    const all = request.headers === undefined ? undefined : headersOf(request.headers)
    const some = request.someHeaders === undefined ? undefined : headersOf(request.someHeaders).headers
    const mapped = own("header", object)
    const headers = all?.headers ?? some
    return recordOf(
      {
        atMs,
        method: textOf(method === undefined ? request.method : valueAt(object, method)),
        url: target === undefined ? undefined : relativeTarget(target),
        status: statusIn(status === undefined ? request.status : valueAt(object, status)),
        address,
        headers: mapped === undefined ? headers : { ...headers, ...mapped },
        cookies: own("cookie", object),
        named: own("named", object),
        live: liveVerdict(object),
      },
      fieldsOf(all?.hidden, some),
      file,
      number,
    )
  }
}

/**
 * Maximum number of field sets per file. Without it, clients could create many sets by sending values that look
 * hidden.
 */
const MOST_SETS = 64
/** Maximum number of header names that are remembered, because clients may invent names. */
const MOST_NAMES = 100_000

/**
 * Returns a function that determines the set of fields for a line. The set is the same object for all lines with the
 * same fields. Once a line contains a header, the header counts as logged for all later lines.
 */
function rememberedFields(
  names: readonly string[],
  hasQuery: boolean,
): (hidden: readonly string[] | undefined, some: object | undefined) => ReadonlySet<string> {
  const known = new Map<string, ReadonlySet<string>>()
  const plain = fieldSet({ names, hasQuery })
  const grown = fieldSet({ names, hasQuery })
  return (hidden, some) => {
    if (hidden !== undefined) {
      const key = hidden.join()
      const found = known.get(key)
      if (found !== undefined) return found
      const made = fieldSet({ names, hasQuery, hiddenHeaders: hidden })
      if (known.size < MOST_SETS) known.set(key, made)
      return made
    }
    if (some === undefined) return plain
    for (const name of Object.keys(some)) {
      if (grown.size >= MOST_NAMES) break
      grown.add(`header:${name}`)
    }
    return grown
  }
}
