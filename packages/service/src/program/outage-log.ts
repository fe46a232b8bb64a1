import type { Logger } from "@sluice/core"

/**
 * A logger for limiters that share a store: each of them says that the store is gone and that it is back, and one line of
 * each is enough.
 */
export function oncePerOutage(log: Logger): Logger {
  let isGone = false
  /** Whether it is news; anything else is. */
  const isNews = (code: string): boolean => {
    if (code !== "SLUICE_DEGRADED" && code !== "SLUICE_RECOVERED") return true
    const wasGone = isGone
    isGone = code === "SLUICE_DEGRADED"
    return isGone !== wasGone
  }
  return {
    warn(fields, message) {
      if (isNews(fields.code)) log.warn(fields, message)
    },
    error(fields, message) {
      if (isNews(fields.code)) log.error(fields, message)
    },
  }
}
