import { ClosedError, type LogFields, type Logger } from "@sluice/core"

/**
 * A logger for limiters that share a store: each of them says that the store is gone and that it is back, and one line of
 * each is enough. None where the program, as it ends, has closed the store under calls: nobody has to be woken.
 */
export function oncePerOutage(log: Logger): Logger {
  let isGone = false
  /** Whether it is news; anything else is. */
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
