import { formatRuleDocument, type RegisteredRules } from "@sluice/core"

/** What a change of rules was. */
export interface Change {
  readonly service: string
  /** Address of who has made it. */
  readonly peer: string
  readonly before: RegisteredRules | undefined
  readonly after: RegisteredRules | undefined
}

/** Where changes of rules are written down. */
export interface Audit {
  changed(change: Change): void
  /** What was changed could not be read again: it is in force here when the rules are next loaded. */
  notInForce(service: string, error: unknown): void
}

/** A log of structured lines, such as pino's. */
export interface AuditLog {
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
}

/** Writes a line for each change, with the rules before and after; of lists of clients only how many they name. */
export function auditTo(log: AuditLog): Audit {
  return {
    changed({ service, peer, before, after }) {
      const message = after === undefined ? "rules removed" : "rules registered"
      log.info({ service, peer, before: told(before), after: told(after) }, message)
    },
    notInForce(service, err) {
      log.warn({ service, err }, "rules were changed, and are not in force here yet")
    },
  }
}

function told(registered: RegisteredRules | undefined): object | undefined {
  if (registered === undefined) return undefined
  const { service, version, rules } = registered
  return {
    version,
    rules: formatRuleDocument(service, rules).rules.map(({ allow, deny, ...rule }) => ({
      ...rule,
      ...(allow !== undefined && { allow: (allow as readonly unknown[]).length }),
      ...(deny !== undefined && { deny: (deny as readonly unknown[]).length }),
    })),
  }
}
