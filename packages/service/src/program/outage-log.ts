import { ClosedError, type LogFields, type Logger } from "@sluice/core"

/**
 * Creates a logger for limiters that share a store. Each limiter reports an outage of the store, its causes and its end,
 * and what is wrong with the store's server. This logs only one line for each. It logs nothing if the program has closed
 * the store under running calls while it ends, because operators need not be alerted.
 */
export function oncePerOutage(log: Logger): Logger {
  /** The first sentences of the causes of the current outage. */
  const causes = new Set<string>()
  /** What is wrong with servers, without the number of keys. */
  const warnings = new Set<string>()
  /** Whether a line is new. Lines that are not about the store always are. */
  const isNews = ({ code, err }: LogFields, message: string): boolean => {
    if (code === "SLUICE_STORE_EVICTS" || code === "SLUICE_STORE_CLOCK_BACK") {
      return isAdded(warnings, message.replace(/ \d+ (keys|s\b)/, ""))
    }
    if (code === "SLUICE_RECOVERED") {
      const wasGone = causes.size > 0
      causes.clear()
      return wasGone
    }
    if (code !== "SLUICE_DEGRADED" && code !== "SLUICE_DEGRADED_FURTHER") return true
    if (err instanceof Error && err.cause instanceof ClosedError) return false
    return isAdded(causes, err instanceof Error ? (err.message.split(/\.(?: |$)/, 1)[0] as string) : "")
  }
  return {
    warn(fields, message) {
      if (isNews(fields, message)) log.warn(fields, message)
    },
    error(fields, message) {
      if (!isNews(fields, message)) return
      // The outage has begun already for another limiter.
      const isFurther = fields.code === "SLUICE_DEGRADED" && causes.size > 1
      log.error(isFurther ? { ...fields, code: "SLUICE_DEGRADED_FURTHER" } : fields, message)
    },
  }
}

function isAdded(set: Set<string>, text: string): boolean {
  return set.size < set.add(text).size
}
