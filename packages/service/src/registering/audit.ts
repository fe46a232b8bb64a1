import { hash } from "node:crypto"
import { formatRuleDocumentInSlices, type RegisteredRules, type StoredRule } from "@sluice/core"

/** What a change of rules was. */
export interface Change {
  /** Whose rules were changed. */
  readonly service: string
  /** Address of who has made it. */
  readonly peer: string
  /** The rules that were there; undefined where there were none. */
  readonly before: RegisteredRules | undefined
  /** The rules that are there now, or were to be; undefined where they were removed. */
  readonly after: Pick<RegisteredRules, "rules"> | undefined
  /** How the registry has failed: its message says where the change may have been made all the same. Absent where it was made. */
  readonly failure?: unknown
}

/** An operation on a client. */
export interface ClientChange {
  /** What was done. */
  readonly action: "reset" | "blocked" | "unblocked"
  /** The service whose rule it is. */
  readonly service: string
  /** Name of the rule. */
  readonly rule: string
  /** The values of the rule's fields. */
  readonly client: readonly string[]
  /** For how long it was blocked, as it was given. */
  readonly for?: string | undefined
  /** Address of the caller. */
  readonly peer: string
  /** Why it is not known to have been done; absent if it was done. */
  readonly failure?: unknown
}

/** Where changes of rules, and operations on clients, are written down. */
export interface Audit {
  /** Rules were registered or removed, or were to be. The call is answered when this has returned or resolved. */
  changed(change: Change): void | Promise<void>
  /** A client was reset, blocked or unblocked, or was to be. */
  clientChanged?(change: ClientChange): void
  /** What was changed could not be read again: it is in force here when the rules are next loaded. */
  notInForce(service: string, error: unknown): void
}

/** A log of structured lines, such as pino's. */
export interface AuditLog {
  /** Takes a change that was made. */
  info(fields: object, message: string): void
  /** Takes a change that has failed, or is not in force here yet. */
  warn(fields: object, message: string): void
}

/**
 * Writes a line for each change, with the rules before and after. Of values that name clients, those of lists and of fields
 * that are matched, it says only how many there are.
 */
export function auditTo(log: AuditLog): Audit {
  return {
    async changed({ service, peer, before, after, failure: err }) {
      const [done, doing] = after === undefined ? ["removed", "removing"] : ["registered", "registering"]
      const [old, now] = [await told(service, before), await told(service, after)]
      const fields = { service, peer, before: old, after: now }
      if (err === undefined) log.info(fields, `rules ${done}`)
      else
        log.warn(
          { ...fields, err },
          `${doing} rules has failed; err says where that may be done all the same`,
        )
    },
    clientChanged({ client, action, failure: err, ...change }) {
      const fields = { ...change, client: digestOf(client) }
      if (err === undefined) log.info(fields, `client ${action}`)
      else log.warn({ ...fields, err }, `a client was to be ${action}; it may not have been`)
    },
    notInForce(service, err) {
      log.warn({ service, err }, "rules were changed, and are not in force here yet")
    },
  }
}

/** Tells clients apart in a log, where their values have no place. */
function digestOf(client: readonly string[]): string {
  return hash("sha256", JSON.stringify(client), "base64url").slice(0, 12)
}

async function told(
  service: string,
  registered: (Pick<RegisteredRules, "rules"> & { readonly version?: number }) | undefined,
): Promise<object | undefined> {
  if (registered === undefined) return undefined
  const { version, rules } = registered
  return {
    ...(version !== undefined && { version }),
    rules: (await formatRuleDocumentInSlices(service, rules)).rules.map(toldRule),
  }
}

function toldRule({ allow, deny, match, ...rule }: StoredRule): object {
  return {
    ...rule,
    ...(match !== undefined && { match: toldMatch(match as StoredMatch) }),
    ...(allow !== undefined && { allow: countOf(allow) }),
    ...(deny !== undefined && { deny: countOf(deny) }),
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
