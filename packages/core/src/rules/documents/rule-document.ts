import { InvalidRuleError, type Problem } from "../../ground/errors.ts"
import { isObject } from "../../ground/shape.ts"
import { locate, type MemberProblem, show } from "../../ground/show.ts"
import { atOnce, inSlices, type Pausable } from "../../ground/slices.ts"
import { methodDoubt, pathDoubt } from "../matching/match.ts"
import { notInFlight } from "../parsing/contradictions.ts"
import { lacksUnit } from "../parsing/fill-rule.ts"
import { given } from "../parsing/member.ts"
import { type CheckedRule, checkTogether, ofRule, withField, withUniqueNames } from "../parsing/parse-rule.ts"
import { RULE_MEMBERS } from "../parsing/rule-members.ts"
import { plainMetadata } from "../parsing/service-metadata-members.ts"
import { POSITIVE } from "../parsing/units.ts"
import type { Rule, RuleMatch, StorableRule } from "../rule.ts"
import type { ServiceMetadata } from "../service-metadata.ts"
import { readStored, ruleDocument, type StoredMembers, storedRate, storedRule } from "./document-schema.ts"

/** The valid content of a document, with its problems. */
export interface RuleDocument {
  /** The service as a string. Absent if the document contains no service, or an invalid service, which is a problem. */
  readonly service?: string
  /** Version of the document, if given. */
  readonly version?: number
  /**
   * The owner and contact of the service. If the document's metadata has no members, this is an empty object, which
   * removes the stored metadata.
   */
  readonly metadata?: ServiceMetadata
  /** The valid rules, in the order written. */
  readonly rules: readonly StorableRule[]
  /** All problems, with their paths in the document. */
  readonly problems: readonly Problem[]
  /** Warnings about valid rules that are probably mistakes. */
  readonly warnings: readonly Problem[]
  /**
   * Notes on defaults that an author may overlook, for example that a rule without a field counts the whole service.
   */
  readonly notes: readonly Problem[]
}

/**
 * Returns the rules of a document in the stored shape, which is
 * `{ service_id, version, rules: [{ name, field, rate: { requests_per_unit, unit } }] }`. Older spellings are accepted:
 * one rule instead of a list, `Service_id`, `requestsPerUnit`, `request_per_unit`, `errorMessage`, `rejection_message`.
 * A rule without a field counts the whole service. Such a rule is returned with `field: "service"`, so that the result
 * can be passed to `rules`.
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
 * Reads a document for a rule source as `parseRuleDocument` does, but never throws. Returns the valid rules as
 * written, and the problems of the invalid rules.
 */
export function readRuleDocument(value: unknown): RuleDocument {
  return located(atOnce(pausableDocument(value)))
}

/**
 * Reads a document as `readRuleDocument` does, in slices of about a millisecond, and yields to the event loop after
 * each slice. Without slices, a document of 1,000 rules would block requests for 100 ms. Never rejects. The value
 * must not change until the promise resolves.
 */
export async function readRuleDocumentInSlices(value: unknown): Promise<RuleDocument> {
  return located(await inSlices(pausableDocument(value)))
}

/** A document whose problems still have arrays of keys as paths. */
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

/** Reads a document, and pauses after each rule. */
export function* pausableDocument(value: unknown): Pausable<UnlocatedDocument> {
  const bare = bareRule(value)
  if (bare !== undefined) return { rules: [], problems: [bare], warnings: [], notes: [] }
  const { members, spelled, problems } = readStored(ruleDocument, value)
  if (spelled.rules === undefined && isObject(value)) {
    problems.push({ path: ["rules"], message: "is missing", accepted: "a list of rules" })
  }
  const found = members.rules === undefined ? [] : yield* readRules(spelled.rules as string, members.rules)
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
  const { service, version, metadata } = members
  return {
    ...(service !== undefined && { service: String(service) }),
    ...(version !== undefined && { version: version as number }),
    ...(metadata !== undefined && { metadata: plainMetadata(metadata as ServiceMetadata) ?? NO_METADATA }),
    rules,
    problems,
    warnings,
    notes,
  }
}

/** Returns a problem if the value is a single rule instead of a document with a list of rules. */
function bareRule(value: unknown): MemberProblem | undefined {
  if (!isObject(value) || ["rules", "rule"].some((name) => Object.hasOwn(value, name))) return undefined
  const names = Object.keys(value).filter((name) => storedRule.spellings.has(name))
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
  // Only rules in code may contain functions.
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

function* readRules(key: string, value: unknown): Pausable<readonly ListedRule[]> {
  if (isObject(value)) return [{ ...readRule(value), at: [key] }]
  if (!Array.isArray(value)) {
    const accepted = "a list of rules, or one rule"
    const noRule = { path: [], message: `${show(value)} is not a list of rules`, accepted }
    return [{ rule: {}, problems: [noRule], at: [key] }]
  }
  const rules: ListedRule[] = []
  // `for…of` also visits the holes of an array, which are invalid rules.
  for (const rule of value) {
    rules.push({ ...readRule(rule), at: [key, rules.length] })
    yield
  }
  return withUniqueNames(rules)
}

function readRule(value: unknown): CheckedRule {
  const stored = readStored(storedRule, value)
  const { problems } = stored
  const { name, field, rate, limit: _, window: __, ...others } = stored.members
  const { limit, window, limitPath } = isObject(value) ? readSize(stored) : NO_SIZE
  const rule: Partial<Rule> = given({ name, field, limit, window, ...others })
  // `readSize` has reported a rate with per.
  const isTwice = rate !== undefined && others.per !== undefined
  const bad = isTwice ? new Set([...stored.bad, "per"]) : stored.bad
  const checked = checkTogether(rule, { bad, problems: [] })
  const between = checked.problems.map(({ path, ...problem }) => ({
    ...problem,
    path: storedPath(path, limitPath),
  }))
  return { ...checked, problems: [...problems, ...between] }
}

type Path = readonly PropertyKey[]

/** Returns the document path for a path in the names used in code. */
function storedPath([first = "", ...rest]: Path, limitPath: Path): Path {
  if (first === "limit") return [...limitPath, ...rest]
  const { stored: [preferred] = [first], names = {} } = RULE_MEMBERS[first as keyof Rule]
  return [preferred, ...rest.map((inner) => names[String(inner)] ?? inner)]
}

interface Size {
  readonly limit?: unknown
  readonly window?: unknown
  /** The path of the limit in the document. */
  readonly limitPath: Path
}

const NO_SIZE: Size = { limitPath: [] }

/**
 * Returns the limit and the window. Reads them from `rate` if it is given, otherwise from the members `limit` and
 * `window`.
 */
function readSize({ members, bad, problems }: StoredMembers): Size {
  const { rate, limit, window, concurrent } = members
  if (concurrent !== undefined || bad.has("concurrent")) {
    if (rate !== undefined) problems.push(notInFlight("rate", rate))
    return { limit, window, limitPath: ["limit"] }
  }
  const isGiven = (name: string): boolean => members[name] !== undefined || bad.has(name)
  const own = ["limit", isGiven("per") ? "per" : "window"].filter(isGiven)
  if (rate !== undefined) {
    const accepted = `either rate, or limit and ${isGiven("per") ? "per" : "window"}`
    problems.push(...own.map((name) => ({ path: [name], message: "is given together with rate", accepted })))
    return readRate(rate, problems)
  }
  if (own.length === 0) {
    const accepted =
      'a rate such as {"requests_per_unit": 5, "unit": "minute"}, or limit and window, or limit and per, or concurrent'
    problems.push({ path: ["rate"], message: "is missing", accepted })
  } else if (own.length === 1) {
    const path = own[0] === "limit" ? ["window"] : ["limit"]
    const message = `is missing, but ${own[0]} is given`
    problems.push({
      path,
      message,
      accepted: own[0] === "limit" ? "both limit and window, or limit and per" : `both limit and ${own[0]}`,
    })
  }
  return { limit, window, limitPath: ["limit"] }
}

function readRate(value: unknown, problems: MemberProblem[]): Size {
  const { members, spelled, bad, problems: found } = readStored(storedRate, value)
  const { limit, unit } = members
  const { limit: spelling = "requests_per_unit" } = spelled
  if (isObject(value) && spelled.limit === undefined && !bad.has("limit")) {
    found.push({ path: [spelling], message: "is missing", accepted: POSITIVE })
  }
  problems.push(...found.map((problem) => ({ ...problem, path: ["rate", ...problem.path] })))
  return { limit, window: unit === undefined ? undefined : `1 ${unit}`, limitPath: ["rate", spelling] }
}
