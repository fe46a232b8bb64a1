import {
  ALGORITHMS,
  holdsAdmitted,
  type RuleAlgorithm,
  readsMember,
  releases,
} from "../../algorithms/kinds.ts"
import type { MemberProblem } from "../../ground/show.ts"
import type { Rule } from "../rule.ts"
import type { Throttle } from "../throttle.ts"
import { burstOf, limitOf, type Override } from "./override-members.ts"
import { RULE_MEMBERS } from "./rule-members.ts"
import { fieldsOf } from "./rule-name.ts"
import { mostExactUnits, mostUnits, percentOf, smallestPercent, windowMsOf } from "./units.ts"

/** The valid members of a rule, with values that several checks need. */
export interface CombinedRule {
  readonly rule: Partial<Rule>
  readonly algorithm: RuleAlgorithm
  /** The window. For a rule with `concurrent`, its `hold`. */
  readonly windowMs: number | undefined
  /** True if the windows are calendar periods. */
  readonly isCalendar: boolean
  readonly fields: readonly string[]
  /** The throttle as an object, with the default of the algorithm. */
  readonly kind: Exclude<Throttle, string>
  /** The limit, or `concurrent`. Undefined if it is a function. */
  readonly units: number | undefined
  readonly burst: number | undefined
  /** The percentage of a soft throttle, or 0. */
  readonly percent: number
}

/** Returns the values that the checks of a rule need, so that they are computed only once. */
export function combined(rule: Partial<Rule>): CombinedRule {
  const { concurrent, hold = RULE_MEMBERS.hold.default, per, field, burst } = rule
  const byDefault = per === undefined ? "sliding-window" : "fixed-window"
  const algorithm = concurrent === undefined ? (rule.algorithm ?? byDefault) : "in-flight"
  const limit = concurrent ?? rule.limit
  const { throttle = holdsAdmitted(algorithm) ? { kind: "queue" } : "hard" } = rule
  const kind = typeof throttle === "object" ? throttle : { kind: throttle }
  return {
    rule,
    algorithm,
    windowMs: windowMsOf(concurrent === undefined ? rule : { window: hold }),
    isCalendar: concurrent === undefined && per !== undefined,
    fields: fieldsOf(field),
    kind,
    units: typeof limit === "number" ? limit : undefined,
    burst,
    percent: kind.kind === "soft" ? kind.percent : 0,
  }
}

export function problem(path: readonly PropertyKey[], message: string, accepted: string): MemberProblem {
  return { path, message, accepted }
}

/**
 * Returns the contradictions between members that are units or times. `knows` returns false if one of the members is
 * given with an invalid value.
 */
export function sizeProblems(
  rule: CombinedRule,
  knows: (...names: (keyof Rule)[]) => boolean,
): MemberProblem[] {
  const isKnown = knows("burst")
  const wrong = [...countProblems(rule, isKnown), ...(isKnown ? throttleProblems(rule) : [])]
  const problems = [...bucketsProblems(rule), ...wrong]
  // If one of these members is invalid, it is unknown how much may be admitted.
  if (wrong.length > 0 || !knows("burst", "throttle")) return problems
  const cost = costProblems(rule)
  if (cost.length > 0 || !knows("overrides", "cost")) return [...problems, ...cost]
  return [...problems, ...overrideProblems(rule)]
}

/** Checks each override in the same way as the rule's own limit and burst. */
function overrideProblems(rule: CombinedRule): MemberProblem[] {
  const { algorithm, windowMs, isCalendar, percent } = rule
  const { overrides = {}, cost = 1 } = rule.rule
  const most = windowMs === undefined ? Number.POSITIVE_INFINITY : mostUnits(algorithm, windowMs, isCalendar)
  const ceiling = ceilingOf(rule)
  const problems: MemberProblem[] = []
  for (const value in overrides) {
    const override = overrides[value] as Override
    const units = limitOf(override)
    const burst = burstOf(override) ?? rule.burst
    const capacity = burst ?? units
    const extra = percent === 0 ? 0 : percentOf(units, percent)
    // Skip a valid override early, because a rule may have thousands of overrides.
    if (cost <= capacity && capacity + extra <= most && units <= most && capacity < ceiling) continue
    const ofClient = { ...rule, units, burst }
    const at = (member: string) => ["overrides", value, ...(typeof override === "number" ? [] : [member])]
    const [counted] = countProblems(ofClient, true)
    if (counted !== undefined) {
      problems.push({ ...counted, path: at(counted.path[0] === "burst" ? "burst" : "limit") })
      continue
    }
    const path = at(burst === undefined ? "limit" : "burst")
    if (capacity >= ceiling) {
      const message = `the ceiling of ${ceiling} is not above ${capacity}, so it would have no effect for this client`
      problems.push(problem(path, message, `at most ${ceiling - 1}`))
    }
    if (costProblems(ofClient).length === 0) continue
    const message = `${capacity} is below the rule's cost of ${cost}, so no request of this client would ever be admitted`
    problems.push(problem(path, message, `${cost} or more`))
  }
  return problems
}

/** Returns the ceiling of an elastic throttle, or Infinity if the rule has no ceiling. */
function ceilingOf({ kind }: CombinedRule): number {
  return (kind.kind === "elastic" ? kind.ceiling : undefined) ?? Number.POSITIVE_INFINITY
}

function bucketsProblems({ rule: { buckets }, windowMs, algorithm }: CombinedRule): MemberProblem[] {
  if (buckets === undefined || windowMs === undefined || buckets <= windowMs) return []
  // Another check already reports that the algorithm does not use the member.
  if (!readsMember(algorithm, "buckets")) return []
  const message = `${buckets} sub-windows do not fit into ${windowMs} ms: each must be at least 1 ms long`
  return [problem(["buckets"], message, windowMs < 2 ? "a longer window" : `2 to ${windowMs}`)]
}

/** Checks that units times windows are exact integers and that logs stay short. */
function countProblems(rule: CombinedRule, knowsBurst: boolean): MemberProblem[] {
  const { algorithm, windowMs, isCalendar } = rule
  const most = ALGORITHMS[algorithm].mostUnits ?? Number.POSITIVE_INFINITY
  for (const [path, units] of countedBy(rule, knowsBurst)) {
    if (units > most) {
      const what = path.length === 1 ? units : `${units}, with the units admitted above the limit,`
      const [whom, instead] = releases(rule)
        ? ["a rule with concurrent", ""]
        : ["a log, which keeps an entry for each unit", ', or algorithm "sliding-window-strict"']
      return [problem(path, `${what} is too many for ${whom}`, `at most ${most} in total${instead}`)]
    }
    // One problem is enough, because if the limit is too high, so are the burst, the percentage and the ceiling.
    if (windowMs !== undefined && units > mostExactUnits(windowMs, isCalendar))
      return [exactProblem(path, units, windowMs, isCalendar)]
  }
  return []
}

type CountedBy = readonly [path: readonly string[], units: number]

/** Returns the numbers of units that may be counted, each with the member that determines it. */
function countedBy(rule: CombinedRule, knowsBurst: boolean): readonly CountedBy[] {
  const { units, burst, percent } = rule
  const ceiling = ceilingOf(rule)
  const all: CountedBy[] = []
  if (units !== undefined) all.push([["limit"], units])
  if (burst !== undefined) all.push([["burst"], burst])
  if (percent > 0 && units !== undefined && knowsBurst) {
    all.push([["throttle", "percent"], (burst ?? units) + percentOf(units, percent)])
  }
  if (Number.isFinite(ceiling)) all.push([["throttle", "ceiling"], ceiling])
  return all
}

function exactProblem(
  path: readonly string[],
  units: number,
  windowMs: number,
  isCalendar: boolean,
): MemberProblem {
  if (isCalendar)
    return problem(
      path,
      `${units} is too many to count exactly`,
      `units up to ${mostExactUnits(windowMs, true)}`,
    )
  const isSeconds = windowMs % 1000 === 0
  const window = isSeconds ? `${windowMs / 1000} s` : `${windowMs} ms`
  const name = path.length === 1 ? path[0] : "units"
  const message = `${units} in ${window} cannot be counted exactly: ${name} times ${isSeconds ? "seconds" : "milliseconds"} must be below 2^53`
  const member = path.at(-1) as string
  if (member === "percent") return problem(path, message, "a smaller percent or limit")
  const inWindow = `up to ${mostExactUnits(windowMs)} in this window`
  return problem(path, message, isSeconds ? inWindow : `a smaller ${member}, or a window of whole seconds`)
}

function throttleProblems({ units, burst, algorithm, kind, percent }: CombinedRule): MemberProblem[] {
  if (percent > 0 && units !== undefined && percentOf(units, percent) === 0) {
    const message = `${percent} percent of ${units} is less than one unit, so it would have no effect`
    // Such a percentage always exists, because even a limit of 1 needs only 100 percent.
    return [problem(["throttle", "percent"], message, `${smallestPercent(units)} to 1000`)]
  }
  if (kind.kind !== "elastic") return []
  const path = ["throttle", "ceiling"]
  if (kind.ceiling === undefined) {
    const most = ALGORITHMS[algorithm].mostUnits
    if (most === undefined) return []
    const message = releases({ algorithm })
      ? "is missing, but a rule with concurrent needs it"
      : "is missing, but a log needs it, because it keeps an entry for each admitted unit"
    return [problem(path, message, `a ceiling up to ${most}`)]
  }
  const capacity = burst ?? units
  if (capacity === undefined || kind.ceiling > capacity) return []
  const of = burst === undefined ? "the limit" : "the burst"
  const message = `${kind.ceiling} is not above ${of} of ${capacity}, so it would have no effect`
  return [problem(path, message, `${capacity + 1} or more`)]
}

function costProblems(rule: CombinedRule): MemberProblem[] {
  const { units, burst, percent, kind } = rule
  const { cost } = rule.rule
  const capacity = burst ?? units
  if (cost === undefined || capacity === undefined) return []
  let [what, most] = [burst === undefined ? "limit" : "burst", capacity]
  if (kind.kind === "elastic") [what, most] = ["ceiling", ceilingOf(rule)]
  else if (percent > 0) {
    what = "limit plus its percent"
    most = units === undefined ? Number.POSITIVE_INFINITY : capacity + percentOf(units, percent)
  }
  if (cost <= most) return []
  const message = `${cost} is above the ${what} of ${most}, so no request would ever be admitted`
  return [problem(["cost"], message, `1 to ${most}`)]
}
