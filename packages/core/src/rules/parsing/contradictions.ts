import {
  ALGORITHM_NAMES,
  type AlgorithmMember,
  holdsAdmitted,
  readsMember,
  releases,
} from "../../algorithms/kinds.ts"
import { ADDRESS_RANGE_ACCEPTED, parseAddressRange } from "../../ground/address.ts"
import { anchorOf, type CalendarPeriod } from "../../ground/calendar.ts"
import { DURATION_ACCEPTED } from "../../ground/duration.ts"
import { type MemberProblem, show } from "../../ground/show.ts"
import { canonicalValue } from "../matching/value-list.ts"
import type { Rule, RuleMatch } from "../rule.ts"
import type { ThrottleQueue } from "../throttle.ts"
import { burstOf } from "./override-members.ts"
import { rejectionProblems } from "./rejection-members.ts"
import { NAME, NAME_ACCEPTED } from "./rule-members.ts"
import { defaultName } from "./rule-name.ts"
import { type CombinedRule, combined, problem, sizeProblems } from "./size-contradictions.ts"
import { POSITIVE } from "./units.ts"

/**
 * Returns the contradictions between the members of a rule, each of which is valid by itself. `bad` contains the
 * names of invalid members, which are absent from `given`. Checks that depend on invalid members are skipped.
 */
export function contradictions(given: Partial<Rule>, bad: ReadonlySet<string>): MemberProblem[] {
  const rule = combined(given)
  const knows = (...names: (keyof Rule)[]): boolean => names.every((name) => !bad.has(name))
  return [
    ...(knows("name", "field", "window") ? nameProblems(given) : []),
    ...(knows("concurrent") ? inFlightProblems(rule) : []),
    ...(knows("concurrent", "per") ? calendarProblems(rule) : []),
    ...sizeProblems(rule, knows),
    ...(knows("algorithm") ? memberUseProblems(rule) : []),
    ...(knows("algorithm", "throttle") ? heldProblems(rule) : []),
    ...(knows("field") ? [...penaltyProblems(rule), ...listProblems(rule)] : []),
    ...(knows("field", "allow", "deny", "overrides") ? deadOverrideProblems(rule) : []),
    ...matchFieldProblems(given),
    ...rejectionProblems(given.rejection),
  ]
}

function nameProblems(rule: Partial<Rule>): MemberProblem[] {
  const name = rule.name ?? defaultName(rule)
  if (name === undefined && typeof rule.window === "function")
    return [problem(["name"], "is missing, and window is a function, so there is no default", NAME_ACCEPTED)]
  if (name === undefined || NAME.test(name)) return []
  const message = `is missing, and the default name ${show(name)} (from field and window) is not valid`
  return [problem(["name"], message, NAME_ACCEPTED)]
}

const ALGORITHM_MEMBERS: readonly AlgorithmMember[] = ["align", "buckets", "burst", "refill"]

const CALENDAR_MEMBERS: readonly (keyof Rule)[] = ["per", "timeZone", "anchor"]

const RATE_MEMBERS: readonly (keyof Rule)[] = [
  ...ALGORITHM_MEMBERS,
  "limit",
  "window",
  ...CALENDAR_MEMBERS,
  "counts",
  "algorithm",
  "countRejected",
]

/** Returns the problem of a member that excludes `concurrent`. */
export function notInFlight(member: string, value: unknown): MemberProblem {
  const message = `${show(value)} is not used by a rule with concurrent`
  const size = CALENDAR_MEMBERS.some((name) => name === member) ? "per" : "window"
  return problem([member], message, `either concurrent, or limit and ${size}`)
}

/** Returns the problems of members that need `concurrent`, and of members that exclude it. */
function inFlightProblems({ rule }: CombinedRule): MemberProblem[] {
  const { concurrent, hold, rejectionMessage } = rule
  if (concurrent === undefined) {
    const accepted = "no hold, or concurrent instead of limit and window"
    const message = `${show(hold)} is used only by a rule with concurrent`
    return hold === undefined ? [] : [problem(["hold"], message, accepted)]
  }
  const given = RATE_MEMBERS.filter((member) => rule[member] !== undefined)
  const problems = given.map((member) => notInFlight(member, rule[member]))
  if (rejectionMessage !== "exhausted-daily-limit") return problems
  const message = `${show(rejectionMessage)} names a time to retry, but nobody knows when requests in progress end`
  return [
    ...problems,
    problem(["rejectionMessage"], message, 'another message, such as "retry-with-fixed-time"'),
  ]
}

/** Returns the problems of `per` with other members, and of members that need it. */
function calendarProblems({ rule }: CombinedRule): MemberProblem[] {
  const { per, timeZone, anchor, window, algorithm } = rule
  if (rule.concurrent !== undefined) return []
  if (per === undefined) {
    const given = Object.entries({ timeZone, anchor }).filter(([, value]) => value !== undefined)
    const accepted = `no such member, or per instead of window, such as per: "month"`
    return given.map(([name]) => problem([name], "is used only by a rule with per", accepted))
  }
  const problems: MemberProblem[] = []
  if (window !== undefined)
    problems.push(problem(["window"], "is given together with per", "either window or per"))
  if (algorithm !== undefined && algorithm !== "fixed-window")
    problems.push(
      problem(["algorithm"], "does not count by calendar periods", '"fixed-window", or no algorithm'),
    )
  if (anchor === undefined) return problems
  if (per !== "day" && (typeof anchor === "function" || anchorOf(per, anchor) !== undefined)) return problems
  const message = per === "day" ? "is not used by a day" : `${show(anchor)} is not a day of a ${per}`
  return [...problems, problem(["anchor"], message, ANCHORS[per])]
}

const ANCHORS: Readonly<Record<CalendarPeriod, string>> = {
  day: "no anchor",
  week: 'a whole number from 1 (Monday) to 7, or a date such as "2026-01-31"',
  month: 'a whole number from 1 to 31, or a date such as "2026-01-31"',
  year: 'a date such as "01-31"',
}

/** Returns the problems of members that the algorithm does not use, including members of overrides. */
function memberUseProblems({ rule, algorithm, isCalendar }: CombinedRule): MemberProblem[] {
  const { overrides = {} } = rule
  const isInFlight = releases({ algorithm })
  const unused = (member: AlgorithmMember): boolean => isCalendar || !readsMember(algorithm, member)
  // `inFlightProblems` reports the rule's own members.
  const own = isInFlight ? [] : ALGORITHM_MEMBERS
  const given = own.filter((member) => rule[member] !== undefined && unused(member))
  const paths: (readonly string[])[] = given.map((member) => [member])
  if (unused("burst")) {
    for (const value in overrides) {
      if (burstOf(overrides[value]) !== undefined) paths.push(["overrides", value, "burst"])
    }
  }
  return paths.map((path) => {
    if (isInFlight) return problem(path, "is not used by a rule with concurrent", "only a limit")
    const member = path.at(-1) as AlgorithmMember
    // Another algorithm would not help, because it does not count by calendar periods.
    if (isCalendar) return problem(path, "is not used by a rule with per", `no ${member}`)
    const users = ALGORITHM_NAMES.filter((name) => readsMember(name, member)).map((name) => `"${name}"`)
    const accepted = `no ${member}, or algorithm ${users.join(" or ")}`
    return problem(path, `is not used by algorithm "${algorithm}"`, accepted)
  })
}

/**
 * Returns the contradictions of a throttle that holds requests with members that punish refusals. A queued request
 * does not count as refused, although it is checked again and again while it waits. With `maxWaiting` 0, a queue
 * holds only requests that a leaky bucket delays. Other algorithms delay no requests, so no request would be held.
 */
function heldProblems({ rule, algorithm, kind }: CombinedRule): MemberProblem[] {
  const { throttle, countRejected, penalty } = rule
  const isQueue = kind.kind === "queue"
  const queue: ThrottleQueue | undefined = isQueue ? kind : kind.kind === "hard" ? undefined : kind.queue
  if (queue === undefined) return []
  const instead = isQueue ? 'throttle "hard"' : "no queue"
  const ofAlgorithm = throttle === undefined ? `, the default of algorithm "${algorithm}",` : ""
  const name = isQueue ? `"queue"${ofAlgorithm}` : `"${kind.kind}" with a queue`
  const message = `applies to refused requests, but throttle ${name} holds them instead`
  const problems: MemberProblem[] = []
  if (countRejected === true) problems.push(problem(["countRejected"], message, `false, or ${instead}`))
  if (penalty !== undefined) problems.push(problem(["penalty"], message, `no penalty, or ${instead}`))
  if (holdsAdmitted(algorithm) || queue.maxWaiting !== 0) return problems
  const path = ["throttle", ...(isQueue ? [] : ["queue"]), "maxWaiting"]
  const isInFlight = releases({ algorithm })
  const ofRule = isInFlight ? "concurrent" : `algorithm "${algorithm}"`
  const noLine = `0 lets no request wait with ${ofRule}, so every request that does not fit would be refused`
  const accepted = isInFlight
    ? `${POSITIVE}, or ${instead}`
    : `${POSITIVE}, ${instead}, or algorithm "leaky-bucket"`
  return [...problems, problem(path, noLine, accepted)]
}

function penaltyProblems({ rule: { penalty, window }, fields }: CombinedRule): MemberProblem[] {
  if (penalty !== undefined && penalty.within === undefined && typeof window === "function")
    return [problem(["penalty", "within"], "is missing, and window is a function", DURATION_ACCEPTED)]
  if (penalty === undefined || fields.length > 0) return []
  const message =
    "would block the whole service, because the rule has no field: one client could lock out all others"
  return [problem(["penalty"], message, 'a rule with a field, such as "ip"')]
}

/** Returns the problems of members that name values of the rule's own field. */
function listProblems({ rule: { allow, deny, overrides }, fields }: CombinedRule): MemberProblem[] {
  // Return early, because most rules have no lists and thousands of rules may be read in one go.
  if (allow === undefined && deny === undefined && overrides === undefined) return []
  const lists = Object.entries({ allow, deny, overrides }).filter(([, values]) => values !== undefined)
  const [field] = fields
  if (field === undefined || fields.length > 1) {
    const counted = field === undefined ? "the whole service" : "a combination of fields"
    const message = `lists values of one field, but the rule counts ${counted}`
    return lists.map(([list]) => problem([list], message, "a rule with a single field"))
  }
  const named = Object.keys(overrides ?? {})
  const invalid = [
    ...valueProblems(field, allow ?? [], ["allow"]),
    ...valueProblems(field, deny ?? [], ["deny"]),
  ]
  // Only addresses and methods have several spellings. Skip other fields, because a rule may have thousands of
  // overrides.
  if (field !== "ip" && field !== "method") return invalid
  const overridden = valueProblems(field, named, ["overrides"], (index) => named[index] as string)
  return [...invalid, ...(overridden.length > 0 ? overridden : sameClientProblems(field, named))]
}

/**
 * Returns a problem for each override whose client has an earlier override, because it would be unknown which of the
 * two applies.
 */
function sameClientProblems(field: string, named: readonly string[]): MemberProblem[] {
  const first = new Map<string, string>()
  return named.flatMap((value) => {
    const client = canonicalValue(field, value)
    const earlier = first.get(client)
    if (earlier === undefined) first.set(client, value)
    if (earlier === undefined) return []
    const message = `is another spelling of ${show(earlier)}, which has an override too`
    return [problem(["overrides", value], message, "one override for each client")]
  })
}

/** Returns a problem for each override of a client in `allow` or `deny`, because the override would have no effect. */
function deadOverrideProblems({ rule, fields }: CombinedRule): MemberProblem[] {
  const { overrides, allow = [], deny = [] } = rule
  const [own] = fields
  if (overrides === undefined || own === undefined) return []
  const listed = new Map<string, string>()
  for (const value of allow)
    listed.set(canonicalValue(own, value), "is in allow too, so this client is not counted")
  for (const value of deny)
    listed.set(canonicalValue(own, value), "is in deny too, so this client is always refused")
  if (listed.size === 0) return []
  return Object.keys(overrides).flatMap((value) => {
    const message = listed.get(canonicalValue(own, value))
    return message === undefined ? [] : [problem(["overrides", value], message, "each client in one list")]
  })
}

/**
 * Returns a problem for each invalid value in a list of field values, because such a value would silently match no
 * client.
 */
function valueProblems(
  field: string,
  values: readonly string[],
  path: readonly string[],
  placeOf: (index: number) => PropertyKey = (index) => index,
): MemberProblem[] {
  return values.flatMap((value, index): MemberProblem[] => {
    const at = [...path, placeOf(index)]
    if (field === "ip" && parseAddressRange(value) === undefined) {
      return [problem(at, `${show(value)} is not an address`, ADDRESS_RANGE_ACCEPTED)]
    }
    if (field !== "method" || value.toUpperCase() !== "HEAD") return []
    return [problem(at, `${show(value)} is counted as "GET"`, '"GET", which covers HEAD too')]
  })
}

function matchFieldProblems({ match }: Partial<Rule>): MemberProblem[] {
  const { fields = {} }: RuleMatch = typeof match === "object" ? match : {}
  return Object.entries(fields).flatMap(([field, values]) => {
    const path = ["match", "fields", field]
    if (field !== "service") return valueProblems(field, values, path)
    const message = "is the same for every request of the rule"
    return [problem(path, message, "another field; the limiter or the document sets the service")]
  })
}
