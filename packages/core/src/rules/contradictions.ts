import { ADDRESS_RANGE_ACCEPTED, parseAddressRange } from "../address.ts"
import { parseDuration } from "../duration.ts"
import { defaultName, fieldsOf } from "./parsed-rule.ts"
import { type MemberProblem, show } from "./problems.ts"
import type { Rule } from "./rule.ts"
import { NAME, NAME_ACCEPTED } from "./rule-members.ts"

/**
 * What is wrong between the members of a rule, each of which is right by itself. `bad` names members that are given
 * but wrong, and so absent from `rule`: nothing is said about what depends on them.
 */
export function contradictions(rule: Partial<Rule>, bad: ReadonlySet<string>): MemberProblem[] {
  const knows = (...names: (keyof Rule)[]): boolean => names.every((name) => !bad.has(name))
  return [
    ...nameProblems(rule, knows("name", "field", "window")),
    ...sizeProblems(rule),
    ...alignProblems(rule, knows("algorithm")),
    ...(knows("field") ? [...listProblems(rule, "allow"), ...listProblems(rule, "deny")] : []),
    ...protoProblems(rule),
  ]
}

function nameProblems(rule: Partial<Rule>, known: boolean): MemberProblem[] {
  if (!known || rule.name !== undefined) return []
  const name = defaultName(rule)
  if (name === undefined || NAME.test(name)) return []
  const message = `is missing, and ${show(name)} made from field and window is not a name`
  return [{ path: ["name"], message, accepted: NAME_ACCEPTED }]
}

/** Windows times limits are kept where integers are exact: below 2^53, counting milliseconds or else whole seconds. */
function sizeProblems({ limit, window, cost }: Partial<Rule>): MemberProblem[] {
  if (typeof limit !== "number") return []
  const problems: MemberProblem[] = []
  const windowMs = parseDuration(window)
  if (windowMs !== undefined && limit * windowMs > Number.MAX_SAFE_INTEGER) {
    const message = `${limit} in ${windowMs} ms is beyond exact counting: limit times milliseconds is not below 2^53`
    if (windowMs % 1000 !== 0) {
      problems.push({ path: ["limit"], message, accepted: "a smaller limit, or a window of whole seconds" })
    } else if (limit * (windowMs / 1000) > Number.MAX_SAFE_INTEGER) {
      const most = Math.floor(Number.MAX_SAFE_INTEGER / (windowMs / 1000))
      const seconds = `${limit} in ${windowMs / 1000} s is beyond exact counting: limit times seconds is not below 2^53`
      problems.push({ path: ["limit"], message: seconds, accepted: `up to ${most} in this window` })
    }
  }
  if (cost !== undefined && cost > limit) {
    const message = `${cost} is above the limit of ${limit}, so no request would ever be admitted`
    problems.push({ path: ["cost"], message, accepted: `1 to ${limit}` })
  }
  return problems
}

function alignProblems(
  { align, algorithm = "sliding-window" }: Partial<Rule>,
  known: boolean,
): MemberProblem[] {
  if (!known || align === undefined || algorithm === "fixed-window") return []
  const message = `is not used by algorithm "${algorithm}"`
  return [{ path: ["align"], message, accepted: 'no align, or algorithm "fixed-window"' }]
}

function listProblems(rule: Partial<Rule>, list: "allow" | "deny"): MemberProblem[] {
  const values = rule[list]
  if (values === undefined) return []
  const fields = fieldsOf(rule.field)
  const field = fields[0]
  if (field === undefined || fields.length > 1) {
    const counted = field === undefined ? "the whole service" : "a combination"
    return [
      {
        path: [list],
        message: `lists values of a field, but the rule counts ${counted}`,
        accepted: "a single field",
      },
    ]
  }
  if (field !== "ip") return []
  return values.flatMap((value, index) => {
    const problem = {
      path: [list, index],
      message: `${show(value)} is not an address`,
      accepted: ADDRESS_RANGE_ACCEPTED,
    }
    return parseAddressRange(value) === undefined ? [problem] : []
  })
}

/** An object type drops this key without a word, so a rule that seems to be for few would be for all. */
function protoProblems({ match }: Partial<Rule>): MemberProblem[] {
  if (match?.fields === undefined || !Object.hasOwn(match.fields, "__proto__")) return []
  return [
    {
      path: ["match", "fields", "__proto__"],
      message: '"__proto__" is not a field',
      accepted: "another name",
    },
  ]
}
