import { ClosedError, type LogFields, type Logger } from "@sluice/core"

/**
 * Creates a logger for limiters that share a store. Each limiter reports an outage of the store and its end; this logs
 * only one line for each. It logs nothing if the program has closed the store under running calls while it ends,
 * because operators need not be alerted.
 */
export function oncePerOutage(log: Logger): Logger {
  let isGone = false
  /** Whether a line is new. Lines that are not about the state of the store always are. */
  const isNews = ({ code, err }: LogFields): boolean => {
    if (code !== "SLUICE_DEGRADED" && code !== "SLUICE_RECOVERED") return true
    if (err instanceof Error && err.cause instanceof ClosedError) return false
    const wasGone = isGone
    isGone = code === "SLUICE_DEGRADED"
    return isGone !== wasGone
  }
  return {
    warn(fields, message) {
      if (isNews(fields)) log.warn(fields, message)
    },
    error(fields, message) {
      if (isNews(fields)) log.error(fields, message)
    },
  }
}
