import { ALGORITHMS, readsMember } from "../../algorithms/kinds.ts"
import { parseDuration } from "../../ground/duration.ts"
import type { MemberProblem } from "../../ground/show.ts"
import type { Rule } from "../rule.ts"
import type { Throttle } from "../throttle.ts"
import { burstOf, limitOf, type Override } from "./parsed-rule.ts"
import { mostExactUnits, mostUnits, percentOf, smallestPercent } from "./units.ts"

/** True if none of these members is given with an invalid value. */
export type Knows = (...names: (keyof Rule)[]) => boolean

/** Returns the contradictions between members that are units or times. */
export function sizeProblems(rule: Partial<Rule>, knows: Knows): MemberProblem[] {
  const counted = countProblems(rule, knows("burst"))
  const throttled = knows("burst") ? throttleProblems(rule) : []
  // If one of these is wrong, it is unknown how much may be admitted.
  const isKnown = counted.length === 0 && throttled.length === 0 && knows("burst", "throttle")
  const cost = isKnown ? costProblems(rule) : []
  return [
    ...bucketsProblems(rule),
    ...counted,
    ...throttled,
    ...cost,
    ...(isKnown && cost.length === 0 && knows("overrides", "cost") ? overrideProblems(rule) : []),
  ]
}

/** Checks each override as the rule's own limit and burst are checked. */
function overrideProblems(rule: Partial<Rule>): MemberProblem[] {
  const { overrides = {}, algorithm = "sliding-window", cost = 1 } = rule
  const windowMs = parseDuration(rule.window)
  const kind = kindOf(rule.throttle)
  const percent = kind.kind === "soft" ? kind.percent : 0
  const most = windowMs === undefined ? Number.POSITIVE_INFINITY : mostUnits(algorithm, windowMs)
  const problems: MemberProblem[] = []
  for (const value in overrides) {
    const override = overrides[value] as Override
    const limit = limitOf(override)
    const burst = burstOf(override) ?? rule.burst
    const capacity = burst ?? limit
    const extra = percent === 0 ? 0 : percentOf(limit, percent)
    const ceiling =
      kind.kind === "elastic" ? (kind.ceiling ?? Number.POSITIVE_INFINITY) : Number.POSITIVE_INFINITY
    // The usual case: a rule may have thousands of overrides.
    if (cost <= capacity && capacity + extra <= most && limit <= most && capacity < ceiling) continue
    const ofClient: Partial<Rule> = { ...rule, limit, burst }
    const at = (member: PropertyKey) => [
      "overrides",
      value,
      ...(typeof override === "number" ? [] : [member]),
    ]
    const counted = countProblems(ofClient, true)
    for (const { path, ...problem } of counted) {
      problems.push({ ...problem, path: at(path[0] === "burst" ? "burst" : "limit") })
    }
    if (counted.length === 0 && capacity >= ceiling) {
      const message = `the ceiling of ${ceiling} is not above ${capacity}, so it would have no effect for this client`
      problems.push({
        path: at(burst === undefined ? "limit" : "burst"),
        message,
        accepted: `at most ${ceiling - 1}`,
      })
    }
    if (counted.length > 0 || costProblems(ofClient).length === 0) continue
    const message = `${capacity} is below the rule's cost of ${cost}, so no request of this client would ever be admitted`
    problems.push({ path: at(burst === undefined ? "limit" : "burst"), message, accepted: `${cost} or more` })
  }
  return problems
}

function bucketsProblems({ buckets, window, algorithm = "sliding-window" }: Partial<Rule>): MemberProblem[] {
  const windowMs = parseDuration(window)
  if (buckets === undefined || windowMs === undefined || buckets <= windowMs) return []
  // Another check already reports that the member is not used.
  if (!readsMember(algorithm, "buckets")) return []
  const message = `${buckets} sub-windows do not fit into ${windowMs} ms: each must be at least 1 ms long`
  const accepted = windowMs < 2 ? "a longer window" : `2 to ${windowMs}`
  return [{ path: ["buckets"], message, accepted }]
}

/** Checks that units times windows are exact integers and that logs stay short. */
function countProblems(rule: Partial<Rule>, knowsBurst: boolean): MemberProblem[] {
  const most = ALGORITHMS[rule.algorithm ?? "sliding-window"].mostUnits ?? Number.POSITIVE_INFINITY
  const windowMs = parseDuration(rule.window)
  for (const { path, units } of countedBy(rule, knowsBurst)) {
    if (units > most) return [logProblem(path, units, most)]
    const problem = windowMs === undefined ? undefined : exactProblem(path, units, windowMs)
    // One problem is enough: if the limit is too high, everything above it is too high as well.
    if (problem !== undefined) return [problem]
  }
  return []
}

/** Returns how many units may be counted, each with the member that sets the number. */
function countedBy({ limit, burst, throttle }: Partial<Rule>, knowsBurst: boolean): CountedBy[] {
  const units = typeof limit === "number" ? limit : undefined
  const all: CountedBy[] = []
  if (units !== undefined) all.push({ path: ["limit"], units })
  if (burst !== undefined) all.push({ path: ["burst"], units: burst })
  const kind = kindOf(throttle)
  if (kind.kind === "soft" && units !== undefined && knowsBurst) {
    all.push({ path: ["throttle", "percent"], units: (burst ?? units) + percentOf(units, kind.percent) })
  }
  if (kind.kind === "elastic" && kind.ceiling !== undefined) {
    all.push({ path: ["throttle", "ceiling"], units: kind.ceiling })
  }
  return all
}

interface CountedBy {
  readonly path: readonly string[]
  readonly units: number
}

function logProblem(path: CountedBy["path"], units: number, most: number): MemberProblem {
  const what = path.length === 1 ? units : `${units}, with the units admitted above the limit,`
  const message = `${what} is too many for a log, which keeps an entry for each unit`
  return { path, message, accepted: `at most ${most} in total, or algorithm "sliding-window-strict"` }
}

function exactProblem(path: CountedBy["path"], units: number, windowMs: number): MemberProblem | undefined {
  const most = mostExactUnits(windowMs)
  if (units <= most) return undefined
  const isSeconds = windowMs % 1000 === 0
  const window = isSeconds ? `${windowMs / 1000} s` : `${windowMs} ms`
  const name = path.length === 1 ? path[0] : "units"
  const message = `${units} in ${window} cannot be counted exactly: ${name} times ${isSeconds ? "seconds" : "milliseconds"} must be below 2^53`
  const member = path.at(-1) as string
  const accepted =
    member === "percent"
      ? "a smaller percent or limit"
      : isSeconds
        ? `up to ${most} in this window`
        : `a smaller ${member}, or a window of whole seconds`
  return { path, message, accepted }
}

function throttleProblems({
  limit,
  burst,
  algorithm = "sliding-window",
  throttle,
}: Partial<Rule>): MemberProblem[] {
  const kind = kindOf(throttle)
  if (kind.kind === "soft" && typeof limit === "number" && percentOf(limit, kind.percent) === 0) {
    const least = smallestPercent(limit)
    const message = `${kind.percent} percent of ${limit} is less than one unit, so it would have no effect`
    // At most 100 percent is needed, for a limit of 1, so there always is such a percentage.
    return [{ path: ["throttle", "percent"], message, accepted: `${least} to 1000` }]
  }
  if (kind.kind !== "elastic") return []
  const path = ["throttle", "ceiling"]
  if (kind.ceiling === undefined) {
    const most = ALGORITHMS[algorithm].mostUnits
    if (most === undefined) return []
    const message = "is missing, but a log needs it, because it keeps an entry for each admitted unit"
    return [{ path, message, accepted: `a ceiling up to ${most}` }]
  }
  const capacity = burst ?? (typeof limit === "number" ? limit : undefined)
  if (capacity === undefined || kind.ceiling > capacity) return []
  const of = burst === undefined ? "the limit" : "the burst"
  const message = `${kind.ceiling} is not above ${of} of ${capacity}, so it would have no effect`
  return [{ path, message, accepted: `${capacity + 1} or more` }]
}

function costProblems({ limit, burst, cost, throttle }: Partial<Rule>): MemberProblem[] {
  const kind = kindOf(throttle)
  const units = typeof limit === "number" ? limit : undefined
  const capacity = burst ?? units
  if (cost === undefined || capacity === undefined) return []
  let what = burst === undefined ? "limit" : "burst"
  let most = capacity
  if (kind.kind === "elastic") {
    what = "ceiling"
    most = kind.ceiling ?? Number.POSITIVE_INFINITY
  } else if (kind.kind === "soft") {
    what = "limit plus its percent"
    most = units === undefined ? Number.POSITIVE_INFINITY : capacity + percentOf(units, kind.percent)
  }
  if (cost <= most) return []
  const message = `${cost} is above the ${what} of ${most}, so no request would ever be admitted`
  return [{ path: ["cost"], message, accepted: `1 to ${most}` }]
}

/** Returns a throttle as an object. */
export function kindOf(throttle: Rule["throttle"]): Exclude<Throttle, string> {
  return typeof throttle === "object" ? throttle : { kind: "hard" }
}
