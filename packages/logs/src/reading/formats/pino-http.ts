import { arrivalTime } from "../times.ts"
import { type LogFormat, SKIPPED } from "./format.ts"
import { pinoLine } from "./pino-line.ts"
import { pinoRecords } from "./pino-records.ts"
import { readPinoLine } from "./read-pino-line.ts"

/**
 * Lines of pino-http and of loggers that write the same members. A request is a line with `req` and `responseTime`,
 * which pino-http writes when the response ends. Other lines with `req` are messages that the app wrote during the
 * request.
 */
export const pinoHttp: LogFormat = {
  name: "pino-http",
  encoding: "utf8",
  open(file, map) {
    const toRecord = pinoRecords(file, map)
    const mustParse = Object.keys(map).length > 0
    const line = pinoLine()
    return {
      read(text, number) {
        if (!readPinoLine(text, line, mustParse)) return undefined
        if (!line.hasRequest || line.durationMs === undefined) return SKIPPED
        return toRecord(line, arrivalTime(line.timeMs, line.durationMs), number)
      },
    }
  },
}
