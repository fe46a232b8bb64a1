import { formatDuration, parseDuration } from "../../ground/duration.ts"
import type { Rule, StorableRule } from "../rule.ts"
import { canonicalField } from "./field-name.ts"

/**
 * Returns the name of a valid rule. The default name consists of the field and the window, such as "ip-1m". Names are
 * unique within a service.
 */
export function ruleName(rule: StorableRule): string {
  return rule.name ?? (defaultName(rule) as string)
}

/** Returns the default name, such as "ip-1m", "ip+route-1m" or "service-1d"; undefined if the window is invalid. */
export function defaultName({ field, window }: Partial<Rule>): string | undefined {
  const windowMs = parseDuration(window)
  return windowMs === undefined
    ? undefined
    : `${fieldsOf(field).join("+") || "service"}-${formatDuration(windowMs)}`
}

/**
 * Returns the fields that a rule's `field` names, in the order written. For "service" or an absent field, the list is
 * empty.
 */
export function fieldsOf(field: Rule["field"] | undefined): readonly string[] {
  const list = typeof field === "string" ? [field] : (field ?? [])
  return list.filter((name) => name !== "service").map(canonicalField)
}
