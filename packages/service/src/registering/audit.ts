import crypto from "node:crypto"
import { formatRuleDocumentInSlices, type RegisteredRules, type StoredRule } from "@sluice/rules"

/** A change of the rules of a service. */
export interface Change {
  /** The service whose rules were changed. */
  readonly service: string
  /** Address of the caller that made the change. */
  readonly peer: string
  /** The rules before the change, or undefined if there were none. */
  readonly before: RegisteredRules | undefined
  /** The rules after the change. If the change failed, the rules that it tried to register. Undefined for a removal. */
  readonly after: Pick<RegisteredRules, "rules" | "metadata"> | undefined
  /**
   * The error of the registry, if the change failed. The message mentions whether the change may have been made
   * anyway.
   */
  readonly failure?: unknown
}

/** An operation on a client. */
export interface ClientChange {
  /** The operation. */
  readonly action: "reset" | "blocked" | "unblocked" | "granted"
  /** The service to which the rule belongs. */
  readonly service: string
  /** Name of the rule. */
  readonly rule: string
  /** The values of the rule's fields, which identify the client. */
  readonly client: readonly string[]
  /** Duration of the block, as the caller gave it. */
  readonly for?: string | undefined
  /** Granted units. Below 0 if granted units were taken back. Absent for other operations. */
  readonly units?: number | undefined
  /** Address of the caller. */
  readonly peer: string
  /** The error, if the operation may have failed. Absent on success. */
  readonly failure?: unknown
}

/** A record of rule changes and of operations on clients. */
export interface Audit {
  /**
   * Records that rules were registered or removed, or that an attempt failed. The response to the call waits until
   * this function has returned or its promise has resolved.
   */
  changed(change: Change): void | Promise<void>
  /** Records that a client was reset, blocked, unblocked or granted units, or that an attempt failed. */
  clientChanged?(change: ClientChange): void
  /**
   * Records that this instance could not load changed rules. The new rules take effect on this instance when the
   * rules are next loaded.
   */
  notInForce(service: string, error: unknown): void
}

/** A structured logger, such as pino. */
export interface AuditLog {
  /** Logs a change that was made. */
  info(fields: object, message: string): void
  /** Logs a change that has failed, or that has not yet taken effect on this instance. */
  warn(fields: object, message: string): void
}

/**
 * Creates an audit that logs a line for each change, with the rules before and after. Values of lists, overrides and
 * matched fields may identify clients, so only their number is logged.
 */
export function auditTo(log: AuditLog): Audit {
  return {
    async changed({ service, peer, before, after, failure: err }) {
      const [done, doing] = after === undefined ? ["removed", "Removing"] : ["registered", "Registering"]
      const [old, now] = [await told(service, before), await told(service, after)]
      const fields = { service, peer, before: old, after: now }
      if (err === undefined) log.info(fields, `Rules were ${done}.`)
      else
        log.warn(
          { ...fields, err },
          `${doing} rules failed. See err for the cause, and for whether the rules may have changed nevertheless.`,
        )
    },
    clientChanged({ client, action, failure: err, ...change }) {
      const fields = { ...change, client: digestOf(client) }
      const done = action === "granted" ? "granted units" : action
      if (err === undefined) log.info(fields, `A client was ${done}.`)
      else
        log.warn(
          { ...fields, err },
          `The call failed, so the client may not have been ${done}. See err for what to do.`,
        )
    },
    notInForce(service, err) {
      log.warn(
        { service, err },
        "Rules were changed, but this instance could not load them yet. See err for the cause.",
      )
    },
  }
}

/** Returns a digest that distinguishes clients in the log, which must not contain their values. */
function digestOf(client: readonly string[]): string {
  return crypto.hash("sha256", JSON.stringify(client), "base64url").slice(0, 12)
}

async function told(
  service: string,
  registered: (Pick<RegisteredRules, "rules" | "metadata"> & { readonly version?: number }) | undefined,
): Promise<object | undefined> {
  if (registered === undefined) return undefined
  const { version, metadata, rules } = registered
  return {
    ...(version !== undefined && { version }),
    ...(metadata !== undefined && { metadata }),
    rules: (await formatRuleDocumentInSlices(service, rules)).rules.map(toldRule),
  }
}

function toldRule({ allow, deny, overrides, match, ...rule }: StoredRule): object {
  return {
    ...rule,
    ...(match !== undefined && { match: toldMatch(match as StoredMatch) }),
    ...(allow !== undefined && { allow: countOf(allow) }),
    ...(deny !== undefined && { deny: countOf(deny) }),
    ...(overrides !== undefined && { overrides: Object.keys(overrides as object).length }),
  }
}

interface StoredMatch {
  readonly fields?: Readonly<Record<string, unknown>>
}

function toldMatch({ fields, ...match }: StoredMatch): object {
  if (fields === undefined) return match
  const counts = Object.entries(fields).map(([name, values]) => [name, countOf(values)])
  return { ...match, fields: Object.fromEntries(counts) }
}

function countOf(values: unknown): number {
  return (values as readonly unknown[]).length
}
