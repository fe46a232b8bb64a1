import {
  ALGORITHM_NAMES,
  type AlgorithmMember,
  type AlgorithmName,
  holdsAdmitted,
  readsMember,
} from "../../algorithms/kinds.ts"
import { ADDRESS_RANGE_ACCEPTED, parseAddressRange } from "../../ground/address.ts"
import { type MemberProblem, show } from "../../ground/show.ts"
import { canonicalValue } from "../matching/value-list.ts"
import type { Rule, RuleMatch } from "../rule.ts"
import type { ThrottleQueue } from "../throttle.ts"
import { burstOf, defaultName, fieldsOf } from "./parsed-rule.ts"
import { rejectionProblems } from "./rejection-members.ts"
import { NAME, NAME_ACCEPTED, POSITIVE } from "./rule-members.ts"
import { type Knows, kindOf, sizeProblems } from "./size-contradictions.ts"

/**
 * Returns the contradictions between the members of a rule that are valid one by one. `bad` names members that are
 * given but invalid, and so are absent from `rule`. Checks that depend on them are skipped.
 */
export function contradictions(rule: Partial<Rule>, bad: ReadonlySet<string>): MemberProblem[] {
  const knows: Knows = (...names) => names.every((name) => !bad.has(name))
  return [
    ...nameProblems(rule, knows("name", "field", "window")),
    ...sizeProblems(rule, knows),
    ...(knows("algorithm") ? memberUseProblems(rule) : []),
    ...(knows("algorithm", "throttle") ? [...heldProblems(rule), ...lineProblems(rule)] : []),
    ...(knows("field") ? penaltyProblems(rule) : []),
    ...(knows("field") ? CLIENT_LISTS.flatMap((list) => listProblems(rule, list)) : []),
    ...(knows("algorithm") ? overrideUseProblems(rule) : []),
    ...(knows("field", "allow", "deny", "overrides") ? deadOverrideProblems(rule) : []),
    ...matchFieldProblems(rule),
    ...rejectionProblems(rule.rejection),
  ]
}

function nameProblems(rule: Partial<Rule>, known: boolean): MemberProblem[] {
  if (!known || rule.name !== undefined) return []
  const name = defaultName(rule)
  if (name === undefined || NAME.test(name)) return []
  const message = `is missing, and the default name ${show(name)} (from field and window) is not valid`
  return [{ path: ["name"], message, accepted: NAME_ACCEPTED }]
}

const ALGORITHM_MEMBERS: readonly AlgorithmMember[] = ["align", "buckets", "burst", "refill"]

function memberUseProblems(rule: Partial<Rule>): MemberProblem[] {
  const { algorithm = "sliding-window" } = rule
  return ALGORITHM_MEMBERS.flatMap((member) => {
    return rule[member] === undefined || readsMember(algorithm, member)
      ? []
      : [notUsed(algorithm, [], member)]
  })
}

function notUsed(algorithm: AlgorithmName, path: readonly string[], member: AlgorithmMember): MemberProblem {
  const users = ALGORITHM_NAMES.filter((name) => readsMember(name, member))
  const others = users.map((user) => `"${user}"`).join(" or ")
  return {
    path: [...path, member],
    message: `is not used by algorithm "${algorithm}"`,
    accepted: `no ${member}, or algorithm ${others}`,
  }
}

/**
 * Returns problems of members that punish refusals. A queued request is not refused: it is only checked repeatedly
 * while it waits.
 */
function heldProblems(rule: Partial<Rule>): MemberProblem[] {
  const { countRejected, penalty } = rule
  const holding = holdingThrottle(rule)
  if (holding === undefined) return []
  const message = `applies to refused requests, but throttle ${holding.name} holds them instead`
  const problems: MemberProblem[] = []
  const accepted = `or ${holding.instead}`
  if (countRejected === true)
    problems.push({ path: ["countRejected"], message, accepted: `false, ${accepted}` })
  if (penalty !== undefined)
    problems.push({ path: ["penalty"], message, accepted: `no penalty, ${accepted}` })
  return problems
}

/**
 * A queue without a line holds only requests that a leaky bucket delays. Other algorithms delay nothing, so no request
 * would be held.
 */
function lineProblems(rule: Partial<Rule>): MemberProblem[] {
  const { algorithm = "sliding-window" } = rule
  const holding = holdingThrottle(rule)
  if (holdsAdmitted(algorithm) || holding?.queue.maxWaiting !== 0) return []
  const message = `0 lets no request wait with algorithm "${algorithm}", so every request that does not fit would be refused`
  const accepted = `${POSITIVE}, ${holding.instead}, or algorithm "leaky-bucket"`
  return [{ path: [...holding.path, "maxWaiting"], message, accepted }]
}

/** A throttle that holds requests, as error messages describe it. */
interface HoldingThrottle {
  readonly name: string
  readonly queue: ThrottleQueue
  /** The path of the queue in the rule. */
  readonly path: readonly string[]
  /** What to write instead so that requests are refused. */
  readonly instead: string
}

/** Returns the rule's throttle if it holds requests, otherwise undefined. */
function holdingThrottle({
  throttle,
  algorithm = "sliding-window",
}: Partial<Rule>): HoldingThrottle | undefined {
  const instead = 'throttle "hard"'
  if (throttle === undefined) {
    if (!holdsAdmitted(algorithm)) return undefined
    return {
      name: `"queue", the default of algorithm "${algorithm}",`,
      queue: {},
      path: ["throttle"],
      instead,
    }
  }
  const given = kindOf(throttle)
  if (given.kind === "queue") return { name: '"queue"', queue: given, path: ["throttle"], instead }
  if (given.kind === "hard" || given.queue === undefined) return undefined
  const name = `"${given.kind}" with a queue`
  return { name, queue: given.queue, path: ["throttle", "queue"], instead: "no queue" }
}

function penaltyProblems({ penalty, field }: Partial<Rule>): MemberProblem[] {
  if (penalty === undefined || fieldsOf(field).length > 0) return []
  const message =
    "would block the whole service, because the rule has no field: one client could lock out all others"
  return [{ path: ["penalty"], message, accepted: 'a rule with a field, such as "ip"' }]
}

/** Members that name values of the rule's own field. */
const CLIENT_LISTS = ["allow", "deny", "overrides"] as const

function listProblems(rule: Partial<Rule>, list: (typeof CLIENT_LISTS)[number]): MemberProblem[] {
  const { [list]: values } = rule
  if (values === undefined) return []
  const fields = fieldsOf(rule.field)
  const field = fields[0]
  if (field === undefined || fields.length > 1) {
    const counted = field === undefined ? "the whole service" : "a combination of fields"
    return [
      {
        path: [list],
        message: `lists values of one field, but the rule counts ${counted}`,
        accepted: "a rule with a single field",
      },
    ]
  }
  if (list !== "overrides") return valueProblems(field, values as readonly string[], [list])
  // Only addresses and methods have several spellings. A rule may have thousands of overrides.
  if (field !== "ip" && field !== "method") return []
  const named = Object.keys(values)
  const problems = valueProblems(field, named, [list], (index) => named[index] as string)
  return problems.length > 0 ? problems : sameClientProblems(field, named)
}

/** Returns the overrides that name the client of an earlier one. It would be unknown which of the two applies. */
function sameClientProblems(field: string, named: readonly string[]): MemberProblem[] {
  const first = new Map<string, string>()
  return named.flatMap((value): MemberProblem[] => {
    const client = canonicalValue(field, value)
    const earlier = first.get(client)
    if (earlier === undefined) {
      first.set(client, value)
      return []
    }
    const message = `is another spelling of ${show(earlier)}, which has an override too`
    return [{ path: ["overrides", value], message, accepted: "one override for each client" }]
  })
}

/** Returns the overrides of clients that another list settles. They would have no effect. */
function deadOverrideProblems({ field, overrides, allow = [], deny = [] }: Partial<Rule>): MemberProblem[] {
  const [own] = fieldsOf(field)
  if (overrides === undefined || own === undefined) return []
  const listed = new Map<string, string>()
  for (const value of allow)
    listed.set(canonicalValue(own, value), "is in allow too, so this client is not counted")
  for (const value of deny)
    listed.set(canonicalValue(own, value), "is in deny too, so this client is always refused")
  if (listed.size === 0) return []
  return Object.keys(overrides).flatMap((value): MemberProblem[] => {
    const message = listed.get(canonicalValue(own, value))
    return message === undefined
      ? []
      : [{ path: ["overrides", value], message, accepted: "each client in one list" }]
  })
}

function overrideUseProblems({
  overrides = {},
  algorithm = "sliding-window",
}: Partial<Rule>): MemberProblem[] {
  const problems: MemberProblem[] = []
  if (readsMember(algorithm, "burst")) return problems
  for (const value in overrides) {
    if (burstOf(overrides[value]) !== undefined)
      problems.push(notUsed(algorithm, ["overrides", value], "burst"))
  }
  return problems
}

/**
 * Returns the invalid values in a list of field values. They would match no client, and the list would silently be
 * without effect.
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
      return [{ path: at, message: `${show(value)} is not an address`, accepted: ADDRESS_RANGE_ACCEPTED }]
    }
    if (field === "method" && value.toUpperCase() === "HEAD") {
      return [
        { path: at, message: `${show(value)} is counted as "GET"`, accepted: '"GET", which covers HEAD too' },
      ]
    }
    return []
  })
}

function matchFieldProblems({ match }: Partial<Rule>): MemberProblem[] {
  const { fields = {} }: RuleMatch = typeof match === "object" ? match : {}
  return Object.entries(fields).flatMap(([field, values]) => {
    const path = ["match", "fields", field]
    if (field !== "service") return valueProblems(field, values, path)
    const message = "is the same for every request of the rule"
    return [{ path, message, accepted: "another field; the limiter or the document sets the service" }]
  })
}
