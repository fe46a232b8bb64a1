import type { Log } from "./log.ts"

const QUIET_MS = 60_000
/** More kinds of events than there are codes of OpenSSL and Node. */
const MOST_KINDS = 1_000

/** Logs what callers do, of which there may be thousands a second. */
export type CallersLog = (kind: string, fields: object, message: string) => void

interface CallerKind {
  quietUntilMs: number
  unlogged: number
}

/** Returns a log that writes one line a minute for each kind of event. `count` is the number of events since the line before. */
export function createCallersLog(
  log: Pick<Log, "warn">,
  now: () => number = () => performance.now(),
): CallersLog {
  const kinds = new Map<string, CallerKind>()
  return (kind, fields, message) => {
    let known = kinds.get(kind)
    if (known === undefined) {
      if (kinds.size >= MOST_KINDS) return
      known = { quietUntilMs: Number.NEGATIVE_INFINITY, unlogged: 0 }
      kinds.set(kind, known)
    }
    known.unlogged++
    if (now() < known.quietUntilMs) return
    known.quietUntilMs = now() + QUIET_MS
    log.warn({ ...fields, count: known.unlogged }, message)
    known.unlogged = 0
  }
}
