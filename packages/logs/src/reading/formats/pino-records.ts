import { addressIn } from "../addresses.ts"
import { fieldSet } from "../logged-fields.ts"
import type { OpenRecord } from "../record.ts"
import { relativeTarget } from "../targets.ts"
import type { FieldMap } from "./format.ts"
import { jsonRecords } from "./json-lines.ts"
import { objectOf } from "./json-value.ts"
import type { PinoLine } from "./pino-line.ts"

const LOGGED = { names: ["ip", "method"], hasQuery: true }

/** Returns a function that creates the record of a request line, or returns undefined if a value is invalid. */
export function pinoRecords(
  file: number,
  map: FieldMap,
): (line: PinoLine, atMs: number, number: number) => OpenRecord | undefined {
  const toRecord = jsonRecords(LOGGED, file, map)
  const onlyFields = fieldSet(LOGGED)
  return (line, atMs, number) => {
    const { address, url, object } = line
    if (object !== undefined) {
      const headers = objectOf(objectOf(object.req)?.headers)
      const { method, status } = line
      return toRecord(object, { atMs, method, url, status, address, headers }, number)
    }
    // The line was only scanned, so it contains no headers, and `map` is empty.
    const remoteAddress = addressIn(address)
    if (Number.isNaN(atMs) || remoteAddress === null) return undefined
    return {
      atMs,
      method: line.method,
      url: url === undefined ? undefined : relativeTarget(url),
      status: line.status,
      remoteAddress,
      headers: undefined,
      cookies: undefined,
      named: undefined,
      live: line.live,
      onlyFields,
      file,
      line: number,
    }
  }
}
