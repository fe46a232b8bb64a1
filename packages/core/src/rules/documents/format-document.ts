import { is } from "valibot"
import { parseDuration, type RateUnit } from "../../ground/duration.ts"
import { InvalidRuleError, type Problem } from "../../ground/errors.ts"
import { locate, show } from "../../ground/show.ts"
import { atOnce, inSlices, type Steps } from "../../ground/time.ts"
import { parseRules } from "../parsing/parse-rule.ts"
import { shortest } from "../parsing/parsed-rule.ts"
import { storeRejection } from "../parsing/rejection-members.ts"
import { POSITIVE } from "../parsing/rule-members.ts"
import { metadataProblems } from "../parsing/service-metadata-members.ts"
import { storeThrottle } from "../parsing/throttle-members.ts"
import type { RuleMatch, RulePenalty, StorableRule } from "../rule.ts"
import { plainMetadata, type ServiceMetadata } from "../service-metadata.ts"
import { SERVICE_ACCEPTED, serviceId } from "./document-schema.ts"

/** The stored rules of one service: plain JSON values, each in its current spelling. */
export interface StoredDocument {
  /** The service that the rules belong to. */
  readonly service_id: string
  /** Grows by one with every change. Absent if changes are not counted. */
  readonly version?: number
  /** The owner and contact of the service. Absent if the service's document has no `metadata`. */
  readonly metadata?: ServiceMetadata
  /** The rules in the order in which they are decided and reported. */
  readonly rules: readonly StoredRule[]
}

/** A rule as it is stored: `{ name: "per-user", field: "user_id", rate: { requests_per_unit: 5, unit: "minute" } }`. */
export type StoredRule = Readonly<Record<string, unknown>>

/**
 * Returns the document that stores these rules; `parseRuleDocument` reads it back as the same rules. A window of one
 * second, minute, hour, day or week is written as a `rate`, any other window as `limit` and `window`. Members have a
 * fixed order, so that equal rules give equal documents.
 * @example
 * ```ts
 * import { formatRuleDocument } from "@sluice/rules"
 *
 * const document = formatRuleDocument("checkout", [{ field: "user_id", limit: 5, window: 60_000 }])
 * // { service_id: "checkout", rules: [{ field: "user_id", rate: { requests_per_unit: 5, unit: "minute" } }] }
 * ```
 * @throws {@link InvalidRuleError} with every problem. A function is a problem too, because it cannot be stored.
 */
export function formatRuleDocument(
  service: string,
  rules: readonly StorableRule[],
  version?: number | undefined,
  metadata?: ServiceMetadata | undefined,
): StoredDocument {
  return atOnce(formatSteps(service, rules, version, metadata))
}

/**
 * Formats rules as `formatRuleDocument` does, in slices of about a millisecond, and lets the event loop run in between.
 * Rejects with the errors that `formatRuleDocument` throws.
 */
export function formatRuleDocumentInSlices(
  service: string,
  rules: readonly StorableRule[],
  version?: number | undefined,
  metadata?: ServiceMetadata | undefined,
): Promise<StoredDocument> {
  return inSlices(formatSteps(service, rules, version, metadata))
}

function* formatSteps(
  service: string,
  rules: readonly StorableRule[],
  version: number | undefined,
  given: ServiceMetadata | undefined,
): Steps<StoredDocument> {
  const problems = [
    ...serviceProblems(service),
    ...versionProblems(version),
    ...metadataProblems(given).map((problem) => locate("", problem)),
    ...parseRules(rules, "rules").problems,
    ...functionProblems(rules),
  ]
  if (problems.length > 0) throw new InvalidRuleError(problems)
  const stored: StoredRule[] = []
  for (const rule of rules) {
    stored.push(formatRule(rule))
    yield
  }
  const metadata = plainMetadata(given)
  return {
    service_id: service,
    ...(version !== undefined && { version }),
    ...(metadata !== undefined && { metadata }),
    rules: stored,
  }
}

/** The stored names of the other members, in the order in which they are written. */
const STORED_AS: Readonly<
  Record<Exclude<keyof StorableRule, "name" | "field" | "limit" | "window">, string>
> = {
  cost: "cost",
  match: "match",
  allow: "allow",
  deny: "deny",
  overrides: "overrides",
  onMissing: "on_missing",
  algorithm: "algorithm",
  align: "align",
  buckets: "buckets",
  burst: "burst",
  refill: "refill",
  throttle: "throttle",
  countRejected: "count_rejected",
  penalty: "penalty",
  notify: "notify",
  shadow: "shadow",
  onStoreFailure: "on_store_failure",
  rejectionMessage: "request_rejection_message",
  rejection: "rejection",
}

function formatRule(rule: StorableRule): StoredRule {
  const others = Object.entries(STORED_AS).map(([member, name]) => [name, rule[member as keyof StorableRule]])
  const { name, field, throttle, penalty, overrides, rejection } = rule
  return plain({
    name,
    field,
    ...formatSize(rule),
    ...Object.fromEntries(others),
    ...(throttle !== undefined && { throttle: storeThrottle(throttle) }),
    ...(penalty !== undefined && { penalty: storePenalty(penalty) }),
    ...(overrides !== undefined && { overrides: storeOverrides(overrides) }),
    ...(rejection !== undefined && { rejection: storeRejection(rejection) }),
  }) as StoredRule
}

function storePenalty({ refusals, within, for: blocked }: RulePenalty): unknown {
  const lengths = [blocked].flat().map(storeDuration)
  return {
    refusals,
    within: within && storeDuration(within),
    for: lengths.length === 1 ? lengths[0] : lengths,
  }
}

function storeOverrides(overrides: NonNullable<StorableRule["overrides"]>): unknown {
  return Object.fromEntries(Object.entries(overrides).map(([value, override]) => [value, shortest(override)]))
}

const RATE_MS: readonly (readonly [RateUnit, number])[] = [
  ["week", 604_800_000],
  ["day", 86_400_000],
  ["hour", 3_600_000],
  ["minute", 60_000],
  ["second", 1_000],
]

function formatSize({ limit, window }: StorableRule): StoredRule {
  const windowMs = parseDuration(window)
  const [unit] = RATE_MS.find(([, ms]) => windowMs === ms) ?? []
  if (unit !== undefined) return { rate: { requests_per_unit: limit, unit } }
  return { limit, window: storeDuration(window) }
}

/** Returns the duration in the largest unit that divides it, or in milliseconds: 90000 is "90 seconds". */
function storeDuration(duration: number | string): number | string {
  const ms = parseDuration(duration) as number
  const [unit, unitMs] = RATE_MS.find(([, each]) => ms % each === 0) ?? []
  if (unit === undefined || unitMs === undefined) return ms
  return ms === unitMs ? `1 ${unit}` : `${ms / unitMs} ${unit}s`
}

/** Returns a copy without undefined members. */
function plain(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plain)
  if (typeof value !== "object" || value === null) return value
  const given = Object.entries(value).filter(([, member]) => member !== undefined)
  return Object.fromEntries(given.map(([name, member]) => [name, plain(member)]))
}

function serviceProblems(service: unknown): Problem[] {
  if (typeof service === "string" && is(serviceId, service)) return []
  const message = `${show(service)} is not a service id`
  return [{ path: "service_id", message, accepted: SERVICE_ACCEPTED }]
}

function versionProblems(version: unknown): Problem[] {
  if (version === undefined || (Number.isSafeInteger(version) && (version as number) >= 0)) return []
  return [
    { path: "version", message: `${show(version)} is not a version`, accepted: "a whole number from 0" },
  ]
}

const MATCH = "methods, path and fields alone"

/** In code, a limit, a match, a signal and a body may be functions, which cannot be stored. */
function functionProblems(rules: unknown): Problem[] {
  if (!Array.isArray(rules)) return []
  return rules.flatMap((rule: Partial<StorableRule> | null, index) => {
    const { signal } = (rule?.throttle ?? {}) as { readonly signal?: unknown }
    const isBodyFunction = typeof rule?.rejection?.body === "function"
    const { when } = (rule?.match ?? {}) as RuleMatch
    const functions = [
      ...(typeof rule?.limit === "function" ? [{ path: ["limit"], accepted: POSITIVE }] : []),
      ...(typeof rule?.match === "function" ? [{ path: ["match"], accepted: MATCH }] : []),
      ...(when === undefined ? [] : [{ path: ["match", "when"], accepted: MATCH }]),
      ...(typeof signal === "function"
        ? [{ path: ["throttle", "signal"], accepted: "no signal, so that the event loop decides" }]
        : []),
      ...(isBodyFunction ? [{ path: ["rejection", "body"], accepted: "a text, an object or a list" }] : []),
    ]
    const message = "is a function, and functions cannot be stored"
    return functions.map((problem) => locate(`rules[${index}]`, { ...problem, message }))
  })
}
