import { ClosedError, type LogFields, type Logger } from "@sluice/core"
import { Incident, type IncidentLine, type Warner } from "@sluice/core/kit"

/**
 * Creates a logger for limiters that share a store. Each limiter reports the start, the causes and the end of an
 * outage of the store, and problems of the store's server. The returned logger logs each such event only once. The
 * logger ignores errors that occur because the program closes the store during its shutdown, so that operators are
 * not alerted.
 */
export function oncePerOutage(log: Logger): Logger {
  const writer: Pick<Warner, "say"> = {
    say: (level, code, message, err) => log[level](err === undefined ? { code } : { code, err }, message),
  }
  const outage = new Incident(writer)
  const servers = new Incident(writer)
  const write = (level: keyof Logger, fields: LogFields, message: string): void => {
    const { code, err } = fields
    const line = { level, code, message, cause: err } as IncidentLine
    if (code === "SLUICE_STORE_EVICTS" || code === "SLUICE_STORE_CLOCK_BACK") {
      servers.add({ ...line, key: message.replace(/ \d+ (keys|s\b)/, "") })
    } else if (code === "SLUICE_RECOVERED") {
      outage.end(line)
    } else if (code !== "SLUICE_DEGRADED" && code !== "SLUICE_DEGRADED_FURTHER") {
      log[level](fields, message)
    } else if (!(err instanceof Error && err.cause instanceof ClosedError)) {
      const key = err instanceof Error ? (err.message.split(/\.(?: |$)/, 1)[0] as string) : ""
      // If the outage has already begun, another limiter has reported it.
      outage.add({ ...line, key, ...(outage.lines.length > 0 && { code: "SLUICE_DEGRADED_FURTHER" }) })
    }
  }
  return {
    warn: (fields, message) => write("warn", fields, message),
    error: (fields, message) => write("error", fields, message),
  }
}
