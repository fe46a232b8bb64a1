import type { OpenRecord } from "../record.ts"
import { type LogFormat, SKIPPED } from "./format.ts"
import { type PinoLine, pinoLine } from "./pino-line.ts"
import { pinoRecords } from "./pino-records.ts"
import { readPinoLine } from "./read-pino-line.ts"

/**
 * Limits for requests that wait for their response line, because each of these requests keeps a chunk of the log in
 * memory.
 */
const MOST_OPEN = 100_000
const LONGEST_WAIT_MS = 60_000

/**
 * Lines of Fastify's own logger. Fastify writes two lines per request. The line "incoming request" contains the time
 * of arrival, the address and the target, so it becomes the record. The later line "request completed" contains
 * neither address nor target, so it is skipped. Its status, and a `ratelimit` that the app added, are copied to the
 * record with the same `reqId`. This works only while the record waits to be sorted: the response must follow within
 * the reorder time and within a minute. Clients may choose the `reqId`. If two open requests use the same `reqId`,
 * neither record gets a status.
 */
export const fastify: LogFormat = {
  name: "fastify",
  encoding: "utf8",
  open(file, map) {
    const toRecord = pinoRecords(file, map)
    const mustParse = Object.keys(map).length > 0
    const open = new Map<string, OpenRequest>()
    const line = pinoLine()

    function complete(): void {
      const id = requestId(line)
      const record = open.get(id)?.record
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

interface OpenRequest {
  readonly atMs: number
  /** Undefined if several requests with the same identity are open. */
  readonly record: OpenRecord | undefined
}

function remember(open: Map<string, OpenRequest>, id: string, record: OpenRecord): void {
  const { atMs } = record
  const isRepeated = open.delete(id)
  open.set(id, { atMs, record: isRepeated ? undefined : record })
  for (const [oldest, request] of open) {
    if (open.size <= MOST_OPEN && atMs - request.atMs <= LONGEST_WAIT_MS) return
    open.delete(oldest)
  }
}
