import { formatDuration, parseDuration } from "../duration.ts"
import type { AlgorithmName, Alignment, OnStoreFailure } from "../policy.ts"
import { canonicalField } from "./field-name.ts"
import type { OnMissing, Rule, RuleMatch } from "./rule.ts"

/** A rule that has been checked, with every default filled in. What comes after trusts it. */
export interface ParsedRule {
  readonly name: string
  /** A positive whole number, or a function whose answer is to be checked at each request. */
  readonly limit: number | ((request: unknown) => unknown)
  readonly windowMs: number
  /** The fields of the combination, header names in lower case. None is the whole service. */
  readonly fields: readonly string[]
  readonly onMissing: OnMissing
  readonly algorithm: AlgorithmName
  readonly align: Alignment
  readonly cost: number
  /** Absent when the rule is for every request. Methods in upper case. */
  readonly match?: RuleMatch
  readonly allow: readonly string[]
  readonly deny: readonly string[]
  readonly rejectionMessage?: string
  readonly shadow: boolean
  /** Absent: the limiter's own. */
  readonly onStoreFailure?: OnStoreFailure
}

/** The rule with its defaults. The caller has checked it. */
export function fillRule(rule: Rule): ParsedRule {
  const { match, rejectionMessage, onStoreFailure } = rule
  return {
    name: ruleName(rule),
    limit: rule.limit as ParsedRule["limit"],
    windowMs: parseDuration(rule.window) as number,
    fields: fieldsOf(rule.field),
    onMissing: rule.onMissing ?? "ip",
    algorithm: rule.algorithm ?? "sliding-window",
    align: rule.align ?? "epoch",
    cost: rule.cost ?? 1,
    ...(match !== undefined && { match: fillMatch(match) }),
    allow: [...(rule.allow ?? [])],
    deny: [...(rule.deny ?? [])],
    ...(rejectionMessage !== undefined && { rejectionMessage }),
    shadow: rule.shadow ?? false,
    ...(onStoreFailure !== undefined && { onStoreFailure }),
  }
}

/** The name of a good rule: its own, or the one made from field and window, "ip-1m". No two rules of a service share one. */
export function ruleName(rule: Rule): string {
  return rule.name ?? (defaultName(rule) as string)
}

/** The fields that a rule's `field` names, in the order written; "service" and nothing at all are none. */
export function fieldsOf(field: Rule["field"]): readonly string[] {
  const list = typeof field === "string" ? [field] : (field ?? [])
  return list.filter((name) => name !== "service").map(canonicalField)
}

/** "ip-1m", "ip+route-1m", "service-1d"; undefined where the window is wrong. */
export function defaultName({ field, window }: Partial<Rule>): string | undefined {
  const windowMs = parseDuration(window)
  return windowMs === undefined
    ? undefined
    : `${fieldsOf(field).join("+") || "service"}-${formatDuration(windowMs)}`
}

function fillMatch({ methods, path, fields }: RuleMatch): RuleMatch {
  return {
    ...(methods !== undefined && { methods: [...new Set(methods.map((method) => method.toUpperCase()))] }),
    ...(path !== undefined && { path }),
    ...(fields !== undefined && {
      fields: Object.fromEntries(
        Object.entries(fields).map(([field, values]) => [canonicalField(field), [...values]]),
      ),
    }),
  }
}
