import { formatDuration, parseDuration } from "../../ground/duration.ts"
import type { Rule, StorableRule } from "../rule.ts"
import { canonicalField } from "./field-name.ts"

/**
 * Returns the name of a valid rule. The default name consists of the field and the window, such as "ip-1m", or of the
 * field and "in-flight". Names are unique within a service.
 */
export function ruleName(rule: StorableRule): string {
  return rule.name ?? (defaultName(rule) as string)
}

/**
 * Returns the default name, such as "ip-1m", "ip+route-1m", "ip-month" or "ip-in-flight". Undefined if the rule has no
 * valid window, no `per` and no `concurrent`.
 */
export function defaultName({ field, window, per, concurrent }: Partial<Rule>): string | undefined {
  const windowMs = parseDuration(window)
  if (windowMs === undefined && per === undefined && concurrent === undefined) return undefined
  const what = windowMs === undefined ? (per ?? "in-flight") : formatDuration(windowMs)
  return `${fieldsOf(field).join("+") || "service"}-${what}`
}

/**
 * Returns the fields that a rule's `field` names, in the order written. For "service" or an absent field, the list is
 * empty.
 */
export function fieldsOf(field: Rule["field"] | undefined): readonly string[] {
  const list = typeof field === "string" ? [field] : (field ?? [])
  return list.filter((name) => name !== "service").map(canonicalField)
}
