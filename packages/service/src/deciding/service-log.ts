import type { LogFields, Logger } from "@sluice/core"

/** Codes of store events. Log lines of these events name no service, because all services share the store. */
const OF_ALL: ReadonlySet<string> = new Set([
  "SLUICE_DEGRADED",
  "SLUICE_DEGRADED_FURTHER",
  "SLUICE_RECOVERED",
])

/**
 * Replacements for messages of the core. The core's messages address the program that calls it, but the callers of
 * the service must fix the problem.
 */
const OWN_WORDS: Readonly<Record<string, (message: string) => string>> = {
  SLUICE_ADDRESS_UNKNOWN: () =>
    'A caller sent no client address: send "ip" in "request", or from Envoy the entry remote_address. Such requests count as the ' +
    "on_missing of their rule says, by default all together. (@sluice/core/errors/sluice_address_unknown.md)",
  SLUICE_CANNOT_RELEASE: (message) =>
    message.replace(
      /So such rules .*(?= \()/,
      'So such rules only apply to requests with "reserve": true, whose reservations the caller settles.',
    ),
  SLUICE_FIELD_MISSING: (message) =>
    message.replace(
      /The function in "fields" .*(?= \()/,
      'Callers do not send it: put it into "request" under this name.',
    ),
}

/**
 * Returns the logger for the limiter of a service. Log lines contain the name of the service, and messages explain
 * what its callers should send.
 */
export function serviceLog(logger: Logger | undefined, service: string): Logger | undefined {
  if (logger === undefined) return undefined
  const say = (level: keyof Logger) => (fields: LogFields, message: string) => {
    const told = OF_ALL.has(fields.code) ? fields : { ...fields, service }
    logger[level](told, OWN_WORDS[fields.code]?.(message) ?? message)
  }
  return { warn: say("warn"), error: say("error") }
}
