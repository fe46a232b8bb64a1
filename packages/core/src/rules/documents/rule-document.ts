import { InvalidRuleError, type Problem } from "../../ground/errors.ts"
import { readShape } from "../../ground/shape.ts"
import { locate, type MemberProblem, show } from "../../ground/show.ts"
import { atOnce, inSlices, type Steps } from "../../ground/time.ts"
import { methodDoubt, pathDoubt } from "../matching/match.ts"
import {
  type CheckedRule,
  checkTogether,
  ofRule,
  withField,
  withThrottle,
  withUniqueNames,
} from "../parsing/parse-rule.ts"
import { lacksUnit } from "../parsing/parsed-rule.ts"
import { rejectionInCode } from "../parsing/rejection-members.ts"
import { POSITIVE } from "../parsing/rule-members.ts"
import type { Rule, RuleMatch, StorableRule } from "../rule.ts"
import { plainMetadata, type ServiceMetadata } from "../service-metadata.ts"
import {
  LIMIT_SPELLINGS,
  MESSAGE_SPELLINGS,
  ruleDocument,
  storedRate,
  storedRule,
} from "./document-schema.ts"

/** The valid content of a document, with its problems. */
export interface RuleDocument {
  /** The service as a text. Absent if the document does not name one, or names it wrongly, which is a problem. */
  readonly service?: string
  /** Version of the document, if given. */
  readonly version?: number
  /** The owner and contact of the service. An empty object if the document gives no member, to remove what was stored. */
  readonly metadata?: ServiceMetadata
  /** The valid rules, in the order written. */
  readonly rules: readonly StorableRule[]
  /** All problems, with their paths in the document. */
  readonly problems: readonly Problem[]
  /** Warnings about valid rules that are probably mistakes. */
  readonly warnings: readonly Problem[]
  /** Defaults of valid rules that a reader may overlook: a rule without a field counts the whole service. */
  readonly notes: readonly Problem[]
}

/**
 * Returns the rules of a document in the stored shape. The shape is `{ service_id, version, rules: [{ name, field,
 * rate: { requests_per_unit, unit } }] }`. Older spellings are accepted: one rule instead of a list, `Service_id`,
 * `requestsPerUnit`, `request_per_unit`, `errorMessage`, `rejection_message`. A rule without a field counts the whole service. It is returned with `field:
 * "service"`, so that the result can be passed to `rules`.
 * @example
 * ```ts
 * import { parseRuleDocument } from "@sluice/rules"
 *
 * const rules = parseRuleDocument({
 *   service_id: "checkout",
 *   rules: [{ field: "user_id", rate: { requests_per_unit: 5, unit: "minute" } }],
 * }) // [{ field: "user_id", limit: 5, window: "1 minute" }]
 * ```
 * @throws {@link InvalidRuleError} with every problem and its path in the document: `rules[1].rate.unit`.
 */
export function parseRuleDocument(value: unknown): Rule[] {
  const { rules, problems } = readRuleDocument(value)
  if (problems.length > 0) throw new InvalidRuleError(problems)
  return rules.map(withField)
}

/**
 * Reads a document as `parseRuleDocument` does, but without throwing, for sources. Returns the valid rules as written,
 * and the problems of the others.
 */
export function readRuleDocument(value: unknown): RuleDocument {
  return located(atOnce(documentSteps(value)))
}

/**
 * Reads a document as `readRuleDocument` does, in slices of about a millisecond, and lets the event loop run in
 * between. Otherwise a document of 1,000 rules would block requests for 100 ms. Never rejects. The value must not
 * change until then.
 */
export async function readRuleDocumentInSlices(value: unknown): Promise<RuleDocument> {
  return located(await inSlices(documentSteps(value)))
}

/** A document whose problems are not yet located: their paths are lists of keys. */
export type UnlocatedDocument = Omit<RuleDocument, "problems" | "warnings" | "notes"> &
  Readonly<Record<"problems" | "warnings" | "notes", readonly MemberProblem[]>>

function located(document: UnlocatedDocument): RuleDocument {
  const locateAll = (problems: readonly MemberProblem[]) => problems.map((problem) => locate("", problem))
  const { problems, warnings, notes } = document
  return {
    ...document,
    problems: locateAll(problems),
    warnings: locateAll(warnings),
    notes: locateAll(notes),
  }
}

/** Reads a document rule by rule. */
export function* documentSteps(value: unknown): Steps<UnlocatedDocument> {
  const bare = bareRule(value)
  if (bare !== undefined) return { rules: [], problems: [bare], warnings: [], notes: [] }
  const head = readShape(ruleDocument, value)
  const problems: MemberProblem[] = [...head.problems]
  const service = onlyOne(head.good, ["service_id", "Service_id", "serviceId"], problems)
  const list = onlyOne(head.good, ["rules", "rule"], problems)
  if (list.key === undefined && !list.isTwice && isObject(value)) {
    problems.push({ path: ["rules"], message: "is missing", accepted: "a list of rules" })
  }
  const found = list.key === undefined ? [] : yield* readRules(list.key, list.value)
  const rules: StorableRule[] = []
  const warnings: MemberProblem[] = []
  const notes: MemberProblem[] = []
  for (const { rule, name, problems: wrong, at } of found) {
    const below = (problem: MemberProblem) => ({ ...problem, path: [...at, ...problem.path] })
    problems.push(...wrong.map((problem) => ofRule(name, below(problem))))
    if (wrong.length > 0) continue
    if (rule.field === undefined) notes.push(below(WHOLE_SERVICE))
    rules.push(rule as StorableRule)
    warnings.push(...doubtsOf(rule as StorableRule).map(below))
  }
  return {
    ...(service.key !== undefined && { service: String(service.value) }),
    ...(head.good.version !== undefined && { version: head.good.version as number }),
    ...(head.good.metadata !== undefined && {
      metadata: plainMetadata(head.good.metadata as ServiceMetadata) ?? NO_METADATA,
    }),
    rules,
    problems,
    warnings,
    notes,
  }
}

/** Returns the problem of a rule that is not in the list of a document. */
function bareRule(value: unknown): MemberProblem | undefined {
  if (!isObject(value) || ["rules", "rule"].some((name) => Object.hasOwn(value as object, name)))
    return undefined
  const names = Object.keys(value as object).filter((name) => Object.hasOwn(storedRule.entries, name))
  if (names.length < 2) return undefined
  const message = `is a rule, because it has ${names.slice(0, 3).join(", ")}`
  return { path: [], message, accepted: 'a document with the rule under "rules:"' }
}

const NO_METADATA: ServiceMetadata = Object.freeze({})

const WHOLE_SERVICE: MemberProblem = {
  path: ["field"],
  message: "is missing, so all requests of the service share this limit",
  accepted: '"service" to make this explicit, or "ip" to limit each client address',
}

function doubtsOf(rule: StorableRule): MemberProblem[] {
  // Only rules in code have functions.
  const match = (rule.match ?? {}) as RuleMatch
  const methods = (match.methods ?? []).flatMap((method, index): MemberProblem[] => {
    const message = methodDoubt(method)
    return message === undefined ? [] : [{ path: ["match", "methods", index], message }]
  })
  const path = pathDoubt(match.path ?? "")
  const matches = path === undefined ? methods : [{ path: ["match", "path"], message: path }, ...methods]
  if (!lacksUnit(rule)) return matches
  const { window } = rule
  const accepted = `"${window} seconds", or "${window} ms" if you mean milliseconds`
  return [{ path: ["window"], message: `${window} without a unit means milliseconds`, accepted }, ...matches]
}

/** A rule of a document, with its path. */
interface ListedRule extends CheckedRule {
  readonly at: Path
}

function* readRules(key: string, value: unknown): Steps<readonly ListedRule[]> {
  if (isObject(value)) return [{ ...readRule(value), at: [key] }]
  if (!Array.isArray(value)) {
    const accepted = "a list of rules, or one rule"
    const noRule = { path: [], message: `${show(value)} is not a list of rules`, accepted }
    return [{ rule: {}, problems: [noRule], at: [key] }]
  }
  const rules: ListedRule[] = []
  // Iterating also visits holes, which are invalid rules.
  for (const rule of value) {
    rules.push({ ...readRule(rule), at: [key, rules.length] })
    yield
  }
  return withUniqueNames(rules)
}

function readRule(value: unknown): CheckedRule {
  const { good, bad, problems } = withThrottle(readShape(storedRule, value), "stored")
  const found: MemberProblem[] = [...problems]
  onlyOne(good, MESSAGE_SPELLINGS, found)
  const size = isObject(value) ? readSize(good, bad, found) : NO_SIZE
  const rule: Record<string, unknown> = {}
  for (const name in good) if (name !== "rate" && !IN_CODE.has(name)) rule[name] = good[name]
  // A rate given beside limit and window overrides them, even if it is invalid.
  for (const name of ["limit", "window"] as const) {
    if (size[name] !== undefined) rule[name] = size[name]
    else if (rule[name] !== undefined) delete rule[name]
  }
  if (good.rejection !== undefined) rule.rejection = rejectionInCode(good.rejection as object)
  for (const [name, inCode] of IN_CODE) if (good[name] !== undefined) rule[inCode] = good[name]
  const checked = checkTogether(rule, { bad, problems: [] })
  const between = checked.problems.map((problem) => ({
    ...problem,
    path: stored(problem.path, size.limitPath),
  }))
  return { ...checked, problems: [...found, ...between] }
}

/** Names in code of members that have another name in documents. */
const IN_CODE: ReadonlyMap<string, keyof Rule> = new Map<string, keyof Rule>([
  ["on_missing", "onMissing"],
  ["on_store_failure", "onStoreFailure"],
  ["count_rejected", "countRejected"],
  ...MESSAGE_SPELLINGS.map((name) => [name, "rejectionMessage"] as const),
])

type Path = readonly PropertyKey[]

/** Returns the document path for a path in the names used in code. */
function stored([first = "", ...rest]: Path, limitPath: Path): Path {
  if (first === "limit") return [...limitPath, ...rest]
  if (first === "throttle" && rest.at(-1) === "maxWaiting")
    return [first, ...rest.slice(0, -1), "max_waiting"]
  if (first === "rejection") return [first, "content_type"]
  return [first === "countRejected" ? "count_rejected" : first, ...rest]
}
type DocumentMembers = Readonly<Record<string, unknown>>

interface Size {
  readonly limit?: unknown
  readonly window?: unknown
  /** The document path of the limit. */
  readonly limitPath: Path
}

const NO_SIZE: Size = { limitPath: ["limit"] }

/** Returns limit and window, read from a rate or from the members with these names. */
function readSize(good: DocumentMembers, bad: ReadonlySet<string>, problems: MemberProblem[]): Size {
  const own = ["limit", "window"].filter((name) => good[name] !== undefined || bad.has(name))
  if (good.rate !== undefined) {
    const accepted = "either rate, or limit and window"
    problems.push(...own.map((name) => ({ path: [name], message: "is given together with rate", accepted })))
    return readRate(good.rate, problems)
  }
  if (own.length === 0) {
    const accepted = 'a rate such as {"requests_per_unit": 5, "unit": "minute"}, or limit and window'
    problems.push({ path: ["rate"], message: "is missing", accepted })
  } else if (own.length === 1) {
    const missing = own[0] === "limit" ? "window" : "limit"
    problems.push({
      path: [missing],
      message: `is missing, but ${own[0]} is given`,
      accepted: "both limit and window",
    })
  }
  return { ...NO_SIZE, limit: good.limit, window: good.window }
}

function readRate(value: unknown, problems: MemberProblem[]): Size {
  const { good, bad, problems: found } = readShape(storedRate, value)
  const all: MemberProblem[] = [...found]
  const { key = "requests_per_unit", value: limit, isTwice } = onlyOne(good, LIMIT_SPELLINGS, all)
  if (isObject(value) && limit === undefined && !isTwice && !LIMIT_SPELLINGS.some((name) => bad.has(name))) {
    all.push({ path: [key], message: "is missing", accepted: POSITIVE })
  }
  problems.push(...all.map((problem) => ({ ...problem, path: ["rate", ...problem.path] })))
  return {
    limit,
    window: good.unit === undefined ? undefined : `1 ${good.unit}`,
    limitPath: ["rate", key],
  }
}

/** Returns the member that is given under one of several spellings. Adds a problem if two are given. */
function onlyOne(
  members: Readonly<Record<string, unknown>>,
  spellings: readonly string[],
  problems: MemberProblem[],
): { readonly key?: string; readonly value?: unknown; readonly isTwice: boolean } {
  const [first, second] = spellings.filter((name) => members[name] !== undefined)
  if (first === undefined) return { isTwice: false }
  if (second !== undefined) {
    problems.push({
      path: [second],
      message: `is another name for ${show(first)}, which is given too`,
      accepted: `only ${show(spellings[0])}`,
    })
    return { isTwice: true }
  }
  return { key: first, value: members[first], isTwice: false }
}

function isObject(value: unknown): boolean {
  return typeof value === "object" && value !== null && !Array.isArray(value)
}
