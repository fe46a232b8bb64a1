import { valueTime } from "../times.ts"
import {
  type JsonObject,
  liveVerdict,
  numberOf,
  objectOf,
  parseObject,
  statusIn,
  textOf,
} from "./json-value.ts"
import type { PinoLine } from "./pino-line.ts"
import { scanPinoLine } from "./pino-scan.ts"

/**
 * Reads a line into `out`. Returns false if the line is not a JSON object. First scans the line for the needed
 * members, which takes a third of the time of `JSON.parse`. If the scan finds anything unexpected, parses the line
 * with `JSON.parse`.
 */
export function readPinoLine(line: string, out: PinoLine, mustParse: boolean): boolean {
  if (!mustParse && scanPinoLine(line, out)) return true
  const object = parseObject(line, mustParse)
  if (object === undefined) return false
  readObject(object, out)
  return true
}

function readObject(object: JsonObject, out: PinoLine): void {
  const request = objectOf(object.req)
  out.object = object
  out.timeMs = valueTime(object.time)
  out.message = textOf(object.msg)
  out.hostname = textOf(object.hostname)
  out.pid = numberOf(object.pid)
  out.reqId = textOf(object.reqId)
  out.hasRequest = request !== undefined
  out.method = textOf(request?.method)
  out.url = textOf(request?.url)
  out.address = textOf(request?.remoteAddress)
  out.status = statusIn(objectOf(object.res)?.statusCode)
  out.durationMs = numberOf(object.responseTime)
  out.live = liveVerdict(object)
}
