import { type LogFormat, SKIPPED } from "./format.ts"
import { jsonRecords } from "./json-lines.ts"
import { objectOf } from "./json-value.ts"
import { pinoLine, readPinoLine } from "./pino-line.ts"

/**
 * Lines of pino-http and of loggers that write the same members. A request is a line with `req` and `responseTime`,
 * which pino-http writes when the response ends. Other lines with `req` are messages that the app wrote meanwhile.
 */
export const pinoHttp: LogFormat = {
  name: "pino-http",
  encoding: "utf8",
  open(file, map) {
    const toRecord = jsonRecords({ names: ["ip", "method"], hasQuery: true }, file, map)
    const mustParse = Object.keys(map).length > 0
    const line = pinoLine()
    return {
      read(text, number) {
        if (!readPinoLine(text, line, mustParse)) return undefined
        if (!line.hasRequest || line.durationMs === undefined) return SKIPPED
        const atMs = line.timeMs - Math.round(line.durationMs)
        const headers = objectOf(objectOf(line.object?.req)?.headers)
        const record = toRecord(line.object ?? {}, { ...line, atMs, headers }, number)
        if (record !== undefined) record.live = line.live
        return record
      },
    }
  },
}
