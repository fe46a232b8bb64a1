import * as v from "valibot"
import { InvalidRuleError, type Problem } from "../../ground/errors.ts"
import { type ObjectSchema, readShape, type Shape, strict } from "../../ground/shape.ts"
import { locate, type MemberProblem, show } from "../../ground/show.ts"
import type { ParsedRule, Rule, StorableRule } from "../rule.ts"
import { contradictions } from "./contradictions.ts"
import { fillRule } from "./fill-rule.ts"
import { NAMES_ELSEWHERE, RULE_MEMBERS } from "./rule-members.ts"
import { defaultName, ruleName } from "./rule-name.ts"

const shapeWith = (required: readonly string[]): ObjectSchema =>
  strict(
    "a rule",
    Object.fromEntries(
      Object.entries(RULE_MEMBERS).map(([name, { shape }]) => [
        name,
        required.includes(name) ? shape : v.optional(shape),
      ]),
    ),
    [],
    NAMES_ELSEWHERE,
  )
const rateShape = shapeWith(["limit", "window"])
const calendarShape = shapeWith(["limit"])
const inFlightShape = shapeWith([])

/** The valid rules, in the order written, and the problems of the invalid rules. */
export interface ParsedRules {
  /** The valid rules, in the order written. */
  readonly rules: readonly ParsedRule[]
  /** The problems of the invalid rules. */
  readonly problems: readonly Problem[]
}

/**
 * Parses a rule in code. `rule` is absent if the rule is invalid. `place` is the prefix of each path: "" or
 * "rules[1]".
 */
export function parseRule(
  value: unknown,
  place: string,
): { readonly rule?: ParsedRule; readonly problems: Problem[] } {
  const { rule, problems } = checkRule(value, false)
  return {
    ...(problems.length === 0 && { rule: fillRule(rule as StorableRule) }),
    problems: problems.map((at) => locate(place, at)),
  }
}

/**
 * Returns the rules of a list that was stored, registered or loaded by a rule source. A rule without a field counts
 * the whole service. Never throws, whatever `value` is. `place` is the name of the list in paths. For example,
 * "rules" results in the path `rules[1].window`.
 */
export function parseRules(value: unknown, place: string): ParsedRules {
  return parseList(value, place, false)
}

/**
 * Returns the rules of a list in code, as `parseRules` does, but every rule needs a `field`. An inline rule without a
 * field counts by address, so a rule in a list must not silently count all clients together.
 */
export function parseCodeRules(value: unknown, place: string): ParsedRules {
  return parseList(value, place, true)
}

function parseList(value: unknown, place: string, needsField: boolean): ParsedRules {
  if (!Array.isArray(value)) {
    const problem = {
      path: [],
      message: `${show(value)} is not a list of rules`,
      accepted: "a list of rules",
    }
    return { rules: [], problems: [locate(place, problem)] }
  }
  // Do not use `map`, which skips holes, so a missing rule would be dropped silently.
  const checked = withUniqueNames(Array.from(value, (rule) => checkRule(rule, needsField)))
  return {
    rules: checked.flatMap(({ rule, problems }) =>
      problems.length === 0 ? [fillStored(rule as StorableRule)] : [],
    ),
    problems: checked.flatMap(({ name, problems }, index) =>
      problems.map((problem) => locate(`${place}[${index}]`, ofRule(name, problem))),
    ),
  }
}

function fillStored(rule: StorableRule): ParsedRule {
  const filled = fillRule(rule)
  return rule.field === undefined || FIELD_ADDED.has(rule) ? { ...filled, lacksField: true } : filled
}

/** Returns the problem with the name of its rule, if the rule has one. */
export function ofRule(name: string | undefined, problem: MemberProblem): MemberProblem {
  return name === undefined ? problem : { ...problem, rule: name }
}

/** Returns the rules of a list in code. Throws InvalidRuleError with every problem. */
export function requireRules(value: unknown, place: string): readonly ParsedRule[] {
  const { rules, problems } = parseCodeRules(value, place)
  if (problems.length > 0) throw new InvalidRuleError(problems)
  return rules
}

/** The valid members of a rule, with the problems of the invalid members. */
export interface CheckedRule {
  readonly rule: Partial<Rule>
  /** The given or default name of the rule; absent if the name cannot be determined. */
  readonly name?: string
  readonly problems: readonly MemberProblem[]
}

/**
 * Valid rules that were made from checked values. Rules of a document reach the rule book as these objects. These
 * objects are not checked again, because the check would be most of the cost of loading.
 */
const SOUND = new WeakSet<object>()

/**
 * Rules to which `withField` has added the field. The authors of such rules may not know that they count the whole
 * service.
 */
const FIELD_ADDED = new WeakSet<object>()

/** Returns a checked rule with an explicit field. The result is frozen, like every parsed rule. */
export function withField(rule: StorableRule): Rule {
  if (rule.field !== undefined) return rule as Rule
  const whole: Rule = Object.freeze({ ...rule, field: "service" })
  SOUND.add(whole)
  FIELD_ADDED.add(whole)
  return whole
}

/** Checks the members of a rule, each of which is valid by itself, for contradictions. */
export function checkTogether(rule: Partial<Rule>, shape: Pick<Shape, "bad" | "problems">): CheckedRule {
  const isNamed = ["name", "field"].every((member) => !shape.bad.has(member))
  const name = isNamed ? (rule.name ?? defaultName(rule)) : undefined
  const problems = [...shape.problems, ...contradictions(rule, shape.bad)]
  if (problems.length === 0 && shape.bad.size === 0) SOUND.add(Object.freeze(rule))
  return { rule, ...(name !== undefined && { name }), problems }
}

/** Returns the rules, with a problem for each rule whose name an earlier rule already uses. */
export function withUniqueNames<Checked extends CheckedRule>(rules: readonly Checked[]): Checked[] {
  const first = new Map<string, number>()
  return rules.map((checked, index) => {
    const { rule, name, problems } = checked
    if (name === undefined) return checked
    const earlier = first.get(name)
    if (earlier === undefined) {
      first.set(name, index)
      return checked
    }
    const given = rule.name === undefined ? `${show(name)}, the default name,` : show(name)
    const message = `${given} is already the name of rule [${earlier}]`
    const accepted = "a name that no other rule in the list has"
    return { ...checked, problems: [...problems, { path: ["name"], message, accepted }] }
  })
}

function checkRule(value: unknown, needsField: boolean): CheckedRule {
  const { field, limit, window, per, concurrent } = (value ?? {}) as Partial<Rule>
  const lacksField = needsField && field === undefined
  if (!lacksField && typeof value === "object" && value !== null && SOUND.has(value)) {
    const rule = value as StorableRule
    return { rule, name: ruleName(rule), problems: [] }
  }
  const rate = per === undefined ? rateShape : calendarShape
  const shape = readShape(concurrent === undefined ? rate : inFlightShape, value)
  const { good, bad } = shape
  const problems =
    limit === undefined && window === undefined && per === undefined
      ? shape.problems.map(orConcurrent)
      : shape.problems
  if (!lacksField || bad.has("field")) return checkTogether(good, { bad, problems })
  return checkTogether(good, { bad: new Set([...bad, "field"]), problems: [MISSING_FIELD, ...problems] })
}

/** Returns the problem, to which `concurrent` is added if the rule lacks all of its limits. */
function orConcurrent(problem: MemberProblem): MemberProblem {
  if (problem.path[0] !== "limit") return problem
  return { ...problem, accepted: `${problem.accepted}; or concurrent, instead of limit and window` }
}

const MISSING_FIELD: MemberProblem = {
  path: ["field"],
  message: "is missing",
  accepted: '"ip" to limit each client address, "service" to limit all requests together, or another field',
}
