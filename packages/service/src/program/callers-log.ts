import type { Log } from "./log.ts"

const QUIET_MS = 60_000
/** Maximum number of kinds of events, which exceeds the number of error codes of OpenSSL and Node. */
const MOST_KINDS = 1_000

/** A function that logs events that callers cause. Callers may cause thousands of events per second. */
export type CallersLog = (kind: string, fields: object, message: string) => void

interface CallerKind {
  quietUntilMs: number
  unlogged: number
}

/**
 * Creates a log that writes at most one line per minute for each kind of event. `count` is the number of events since
 * the previous line.
 */
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
