import type { Clock, InvalidRuleError, RuleSourceError } from "@sluice/core"
import { Incident, type Warner } from "@sluice/core/kit"

/** A lasting problem is logged again every hour, so that the engineers on duty at that time see it. */
const HOUR_MS = 3_600_000

/** Creates the incident for rules that are rejected or cannot be loaded. */
export function rejectionIncident(warner: Warner, clock: Clock, isRepeated = true): Incident {
  return new Incident(warner, isRepeated ? HOUR_MS : undefined, clock)
}

/** Logs a problem of some rules, unless the log already reports it. Returns true if the problem was logged. */
export function beginRejection(
  incident: Incident,
  message: string,
  cause: InvalidRuleError | RuleSourceError,
): boolean {
  return incident.begin({ level: "error", code: "SLUICE_RULES_REJECTED", message, cause, key: message })
}

/** If a problem was logged, logs that it is solved and which rules are in force. */
export function endRejection(incident: Incident, message: string): void {
  incident.end({ level: "warn", code: "SLUICE_RULES_RECOVERED", message })
}
