import type { Logger } from "@sluice/core"
import type { Warner } from "@sluice/core/kit"

/** A change that an operator has made to a client, or that has failed. */
export interface DashboardChange {
  /** What was done to the client. */
  readonly action: "reset" | "blocked" | "unblocked" | "granted"
  /** The service of the rule. */
  readonly service: string
  /** Name of the rule. */
  readonly rule: string
  /** The client's part of the counter's key, such as an address. This is personal data. */
  readonly client: string
  /** Duration of the block, as the operator gave it. Absent for other actions. */
  readonly for?: string
  /** Units that were granted. Absent for other actions. */
  readonly units?: number
  /** The error, if the change may have failed. Absent on success. */
  readonly failure?: unknown
}

/** Receives each change, and the framework's own request that has caused the change. */
export type AuditOption = (change: DashboardChange, request: never) => void

/** A logger that also accepts lines about changes that were made. */
export interface DashboardLogger extends Logger {
  /** Logs a change of a client. */
  info?(fields: object, message: string): void
}

/** Returns a function that reports changes to `audit`, or without it to the logger or the console. Never throws. */
export function auditBy(
  audit: AuditOption | undefined,
  logger: DashboardLogger | undefined,
  warner: Warner,
): (change: DashboardChange, request: unknown) => void {
  return async (change, request) => {
    try {
      if (audit === undefined) logChange(change, logger)
      // The function may be async. Its rejection would end the process.
      else await audit(change, request as never)
    } catch (error) {
      const message =
        "The dashboard could not report a change of a client, because its option audit or logger failed."
      warner.once("SLUICE_CALLBACK_FAILED", message, "audit", error)
    }
  }
}

function logChange({ failure: err, ...fields }: DashboardChange, logger: DashboardLogger | undefined): void {
  const isDone = err === undefined
  const done = fields.action === "granted" ? "granted units" : fields.action
  const line = isDone
    ? `A client was ${done}.`
    : `The call failed, so the client may not have been ${done}. See err for what to do.`
  if (logger?.info !== undefined) logger.info(isDone ? fields : { ...fields, err }, line)
  else console.info(line, oneLine(fields), ...(isDone ? [] : [err]))
}

/** Returns JSON in one line, whatever characters the client's key contains. JSON itself does not escape all of them. */
function oneLine(fields: object): string {
  const escaped = (char: string): string => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`
  return JSON.stringify(fields).replace(/[\x7f-\x9f\u2028\u2029]/g, escaped)
}
