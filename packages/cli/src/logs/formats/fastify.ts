import type { OpenRecord } from "../record.ts"
import { type LogFormat, SKIPPED } from "./format.ts"
import { type PinoLine, pinoLine } from "./pino-line.ts"
import { pinoRecords } from "./pino-records.ts"
import { readPinoLine } from "./read-pino-line.ts"

/** Most requests whose response is awaited. The oldest is forgotten first, and then has no status. */
const MOST_OPEN = 100_000

/**
 * Lines of Fastify's own logger. It writes two lines per request. "incoming request" has the time of arrival, the
 * address and the target, so it is the request. "request completed" comes later and has neither address nor target, so
 * it is skipped. Its status, and the `ratelimit` that the app may have added to it, are copied to the request with the
 * same `reqId`. This works while the request waits to be sorted, so for responses within the reorder time.
 */
export const fastify: LogFormat = {
  name: "fastify",
  encoding: "utf8",
  open(file, map) {
    const toRecord = pinoRecords(file, map)
    const mustParse = Object.keys(map).length > 0
    const open = new Map<string, OpenRecord>()
    const line = pinoLine()

    function complete(): void {
      const id = requestId(line)
      const record = open.get(id)
      if (record === undefined) return
      open.delete(id)
      record.status = line.status
      record.live = line.live ?? record.live
    }

    return {
      read(text, number) {
        if (!readPinoLine(text, line, mustParse)) return undefined
        if (line.message === "request completed") complete()
        if (line.message !== "incoming request" || !line.hasRequest) return SKIPPED
        const record = toRecord(line, line.timeMs, number)
        if (record !== undefined && line.reqId !== undefined) remember(open, requestId(line), record)
        return record
      },
    }
  },
}

/** Returns the identity of a request in a file that several processes may have written. */
function requestId({ hostname, pid, reqId }: PinoLine): string {
  return `${hostname} ${pid} ${reqId}`
}

function remember(open: Map<string, OpenRecord>, id: string, record: OpenRecord): void {
  open.delete(id)
  open.set(id, record)
  if (open.size <= MOST_OPEN) return
  for (const oldest of open.keys()) {
    open.delete(oldest)
    return
  }
}
