import { LogError } from "../../log-error.ts"
import { addressIn } from "../addresses.ts"
import { mappedNames, mapTarget } from "../field-map.ts"
import { fieldSet } from "../logged-fields.ts"
import { presentValue, recordOf, statusOf } from "../record.ts"
import { arrivalTime, epochTime, isoTime } from "../times.ts"
import { type FieldMap, type LineReader, type LineResult, type LogFormat, SKIPPED } from "./format.ts"

/**
 * Standard logs of Amazon CloudFront, whose line `#Fields:` names the columns. A time is the end of the request in
 * whole seconds, so `time-taken` is also subtracted in whole seconds.
 */
export const cloudfront: LogFormat = {
  name: "cloudfront",
  encoding: "latin1",
  resolutionMs: 1_000,
  open: cloudfrontReader,
}

const HEADERS: Readonly<Record<string, string>> = {
  referer: "cs(Referer)",
  "user-agent": "cs(User-Agent)",
  host: "x-host-header",
  "x-forwarded-for": "x-forwarded-for",
}

function cloudfrontReader(file: number, map: FieldMap): LineReader {
  const entries = Object.entries(map).map(([field, source]) => ({ target: mapTarget(field), source }))
  const unusable = entries.find(({ target }) => !["header", "cookie", "named"].includes(target.kind))
  if (unusable !== undefined) {
    throw new LogError(
      `--map ${unusable.target.kind}=${unusable.source}: CloudFront logs name it themselves; leave this entry out`,
    )
  }
  let columns: ReadonlyMap<string, number> = new Map()
  let onlyFields = fieldSet({ names: [], hasQuery: false })

  function readColumns(line: string): void {
    columns = new Map(
      line
        .slice("#Fields:".length)
        .trim()
        .split(/\s+/)
        .map((name, index) => [name, index]),
    )
    const headers = Object.keys(HEADERS).filter((name) => columns.has(HEADERS[name] as string))
    const names = ["ip", "method", ...headers.map((name) => `header:${name}`), ...mappedNames(map)]
    onlyFields = fieldSet({ names, hasQuery: columns.has("cs-uri-query") })
  }

  return {
    read(line, number): LineResult {
      if (line.startsWith("#")) {
        if (line.startsWith("#Fields:")) readColumns(line)
        return SKIPPED
      }
      const values = line.split("\t")
      if (values.length !== columns.size) return undefined
      const column = (name: string): string | undefined => {
        const index = columns.get(name)
        return index === undefined ? undefined : presentValue(values[index])
      }
      const atMs = arrivalMs(column)
      const address = addressIn(column("c-ip"))
      const stem = column("cs-uri-stem")
      const method = column("cs-method")
      if (Number.isNaN(atMs) || stem === undefined || method === undefined) return undefined
      if (address === null) return undefined
      const query = column("cs-uri-query")
      const pick = (kind: string): Record<string, string | undefined> =>
        Object.fromEntries(
          entries.flatMap(({ target, source }) =>
            target.kind === kind && "name" in target ? [[target.name, decoded(column(source))]] : [],
          ),
        )
      const headers = Object.fromEntries(
        Object.entries(HEADERS).flatMap(([name, source]) =>
          columns.has(source) ? [[name, decoded(column(source))]] : [],
        ),
      )
      const has = (kind: string): boolean => entries.some(({ target }) => target.kind === kind)
      return recordOf(
        {
          atMs,
          method,
          url: query === undefined ? stem : `${stem}?${query}`,
          status: statusOf(column("sc-status")),
          address,
          headers: { ...headers, ...pick("header") },
          cookies: has("cookie") ? pick("cookie") : undefined,
          named: has("named") ? pick("named") : undefined,
        },
        onlyFields,
        file,
        number,
      )
    },
  }
}

function arrivalMs(column: (name: string) => string | undefined): number {
  const endMs = isoTime(`${column("date")}T${column("time")}Z`)
  const taken = column("time-taken")
  const isSeconds = taken === undefined || /^\d{1,7}(?:\.\d{1,9})?$/.test(taken)
  return isSeconds ? epochTime(arrivalTime(endMs, Math.round(Number(taken ?? 0)) * 1_000)) : Number.NaN
}

/** Decodes the percent encoding of a header. CloudFront encodes spaces and other bytes in headers. */
function decoded(text: string | undefined): string | undefined {
  return text?.replace(/%(?:25)?([\da-f]{2})/gi, (_, code: string) =>
    String.fromCharCode(Number.parseInt(code, 16)),
  )
}
