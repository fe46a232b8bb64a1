import { Incident, type IncidentLine } from "../../ground/incident.ts"

const CHECK_STORE = "Check the connection to the store."

/** Returns the log line about refunds that failed in the background. */
export function lostRefundsLine(error: Error): IncidentLine {
  const lost = (losses: number) =>
    `${losses === 1 ? "A refund was lost, so its" : `${losses} refunds were lost, so their`} units may stay taken until their window passes`
  return Incident.lossLine("SLUICE_REFUND_LOST", lost, error, CHECK_STORE)
}

/**
 * Returns the log line about failed charges to the counters of another data center, or to the shared counters of a
 * store that writes back.
 */
export function lostChargesLine(error: Error): IncidentLine {
  const lost = (losses: number) =>
    `Admitted units were not charged to other counters${losses === 1 ? "" : ` ${losses} times`}, so these may admit as many units again`
  return Incident.lossLine("SLUICE_CHARGES_LOST", lost, error, CHECK_STORE)
}

/** Returns the log line about permits that ended although their requests are still in progress. */
export function lostPermitsLine(policy: string, error: Error | undefined): IncidentLine {
  const lost = (losses: number) =>
    `${losses === 1 ? "A permit ended although its request is" : `${losses} permits ended although their requests are`} in progress, so other requests may have taken their place. The latest is of rule "${policy}"`
  const late = error ?? new Error("This process was too busy or frozen to renew them.")
  return Incident.lossLine("SLUICE_PERMITS_LOST", lost, late, "Raise the rule's hold if this happens often.")
}
