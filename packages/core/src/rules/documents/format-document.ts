import * as v from "valibot"
import { DURATION_ACCEPTED } from "../../ground/duration.ts"
import { InvalidRuleError, type Problem } from "../../ground/errors.ts"
import { readShape, strict } from "../../ground/shape.ts"
import { locate } from "../../ground/show.ts"
import { atOnce, inSlices, type Pausable } from "../../ground/slices.ts"
import type { RuleMember } from "../parsing/member.ts"
import { parseRules } from "../parsing/parse-rule.ts"
import { ANCHOR_ACCEPTED, PERMITS_ACCEPTED, RULE_MEMBERS } from "../parsing/rule-members.ts"
import { plainMetadata, serviceMetadata } from "../parsing/service-metadata-members.ts"
import { storeSize } from "../parsing/stored-size.ts"
import { POSITIVE } from "../parsing/units.ts"
import type { StorableRule } from "../rule.ts"
import type { ServiceMetadata } from "../service-metadata.ts"
import { documentVersion, serviceName } from "./document-schema.ts"

/** The stored rules of one service: plain JSON values, each in its current spelling. */
export interface StoredDocument {
  /** The service that the rules belong to. */
  readonly service_id: string
  /** The version of the document, which grows by one with every change. Absent if changes are not counted. */
  readonly version?: number
  /** The owner and contact of the service. Absent if the service's document has no `metadata`. */
  readonly metadata?: ServiceMetadata
  /** The rules in the order in which they are checked and reported. */
  readonly rules: readonly StoredRule[]
}

/** A rule as it is stored: `{ name: "per-user", field: "user_id", rate: { requests_per_unit: 5, unit: "minute" } }`. */
export type StoredRule = Readonly<Record<string, unknown>>

/**
 * Returns the document that stores these rules. `parseRuleDocument` returns the same rules for this document. A
 * window of one second, minute, hour, day or week is written as a `rate`, and any other window as `limit` and
 * `window`. Members have a fixed order, so that equal rules result in equal documents.
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
 * Formats rules as `formatRuleDocument` does, in slices of about a millisecond, and yields to the event loop after
 * each slice. Rejects with the errors that `formatRuleDocument` throws.
 */
export function formatRuleDocumentInSlices(
  service: string,
  rules: readonly StorableRule[],
  version?: number | undefined,
  metadata?: ServiceMetadata | undefined,
): Promise<StoredDocument> {
  return inSlices(formatSteps(service, rules, version, metadata))
}

const documentHead = strict("a rule document", {
  service_id: serviceName,
  version: v.optional(documentVersion),
  metadata: v.optional(serviceMetadata),
})

function* formatSteps(
  service: string,
  rules: readonly StorableRule[],
  version: number | undefined,
  given: ServiceMetadata | undefined,
): Pausable<StoredDocument> {
  const head = readShape(documentHead, { service_id: service, version, metadata: given })
  const problems = [
    ...head.problems.map((problem) => locate("", problem)),
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

const { name: _name, field: _field, limit: _limit, window: _window, ...others } = RULE_MEMBERS
const OTHERS = Object.entries(others) as unknown as readonly (readonly [keyof typeof others, RuleMember])[]

function formatRule(rule: StorableRule): StoredRule {
  const { name, field } = rule
  const stored: Record<string, unknown> = { name, field, ...storeSize(rule) }
  for (const [member, { stored: [spelling] = [member], store }] of OTHERS) {
    const value = rule[member]
    if (value !== undefined) stored[spelling] = store === undefined ? value : store(value)
  }
  return plain(stored) as StoredRule
}

/** Returns a copy without undefined members. */
function plain(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plain)
  if (typeof value !== "object" || value === null) return value
  const given = Object.entries(value).filter(([, member]) => member !== undefined)
  return Object.fromEntries(given.map(([name, member]) => [name, plain(member)]))
}

const MATCH = "methods, path and fields alone"
/** The members that may be functions in code, each with the form that can be stored instead. */
const FUNCTIONS: readonly (readonly [path: readonly string[], accepted: string])[] = [
  [["limit"], POSITIVE],
  [["window"], DURATION_ACCEPTED],
  [["anchor"], ANCHOR_ACCEPTED],
  [["concurrent"], PERMITS_ACCEPTED],
  [["match"], MATCH],
  [["match", "when"], MATCH],
  [["throttle", "signal"], "no signal, so that the event loop decides"],
  [["rejection", "body"], "a string, an object or an array"],
]

/** Returns the members that are functions, which cannot be stored. */
function functionProblems(rules: unknown): Problem[] {
  if (!Array.isArray(rules)) return []
  return rules.flatMap((rule, index) =>
    FUNCTIONS.filter(([path]) => typeof memberAt(rule, path) === "function").map(([path, accepted]) =>
      locate(`rules[${index}]`, { path, message: "is a function, and functions cannot be stored", accepted }),
    ),
  )
}

function memberAt(value: unknown, path: readonly string[]): unknown {
  return path.reduce((object, name) => (object as Readonly<Record<string, unknown>> | null)?.[name], value)
}
