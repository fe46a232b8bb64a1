import type { LiveVerdict } from "../log.ts"
import type { JsonObject } from "./json-value.ts"

/** The members of a pino line that a replay needs. One object is reused for all lines of a file. */
export interface PinoLine {
  /** When the line was written, in epoch milliseconds; NaN if it is invalid. */
  timeMs: number
  message: string | undefined
  hostname: string | undefined
  pid: number | undefined
  reqId: string | undefined
  hasRequest: boolean
  method: string | undefined
  url: string | undefined
  address: string | undefined
  status: number | undefined
  durationMs: number | undefined
  live: LiveVerdict | undefined
  /** The result of `JSON.parse`. Undefined if scanning the line was enough. */
  object: JsonObject | undefined
}

/** Returns an empty line, to be filled by `readPinoLine`. */
export function pinoLine(): PinoLine {
  return {
    timeMs: Number.NaN,
    message: undefined,
    hostname: undefined,
    pid: undefined,
    reqId: undefined,
    hasRequest: false,
    method: undefined,
    url: undefined,
    address: undefined,
    status: undefined,
    durationMs: undefined,
    live: undefined,
    object: undefined,
  }
}
