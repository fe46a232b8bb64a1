import { serializeString } from "structured-headers"
import type { Decision, PolicyCheck } from "../../decision/decision.ts"
import type { HeaderLine } from "../../ground/answer.ts"
import { PERMITS, REQUESTS } from "../../ground/policy.ts"
import {
  decimal,
  fieldInteger,
  type HeaderPolicy,
  type HeaderWriter,
  hasLimit,
  isCounted,
  remainingTold,
  secondsTold,
  windowSeconds,
} from "./header-values.ts"
import { textsOf } from "./rule-texts.ts"

/** The names that a dialect gives to its fields and to the parameters of a `RateLimit` member. */
interface MemberDialect {
  /** The field that lists all policies. */
  readonly policy: string
  /** The field that lists the remaining units. */
  readonly limit: string
  readonly remaining: string
  readonly seconds: string
  /** The parameter for the units that this request costs. Undefined if the dialect has no such parameter. */
  readonly cost: string | undefined
}

/** The constant parts of a policy's members. Only the integers between these strings vary per request. */
interface MemberText {
  readonly name: string
  /** Undefined for permits, which are released when requests end, and not after a time. */
  readonly windowS: number | undefined
  /** The rule's own limit; undefined if a function returns it. A client with an override has another limit. */
  readonly limit: number | undefined
  /** The RateLimit-Policy line with only this member and the rule's own limit. */
  readonly line: HeaderLine | undefined
  readonly beforeLimit: string
  readonly afterLimit: string
  readonly beforeRemaining: string
}

/** The latest header lines for a refusal by a single policy, and the values that these lines depend on. */
interface ToldRefusal {
  readonly seconds: number | undefined
  readonly cost: number
  readonly lines: readonly HeaderLine[]
}

/**
 * Returns the writer of a dialect whose fields are lists with one member per policy:
 * `RateLimit-Policy: "hour";q=100;w=3600` and `RateLimit: "hour";r=50;t=1800`. Each mount may append its own members.
 *
 * `RateLimit-Policy` lists every policy that was checked, in the order of the rules. `RateLimit` lists the policy that
 * binds or, on a refusal, each policy that refused. Names are serialized once, so that a request only appends integers.
 */
export function compileMembers(policies: readonly HeaderPolicy[], dialect: MemberDialect): HeaderWriter {
  const told = policies.filter(({ shadow }) => !shadow)
  const textOf = textsOf(told, (policy) => memberText(policy, dialect))
  const only = told[0]
  const first =
    only?.windowMs === undefined ? undefined : textOf({ policy: only.name, windowMs: only.windowMs })
  const beforeSeconds = `;${dialect.seconds}=`
  // The text for the seconds changes at most once a second.
  let lastSeconds: number | undefined
  let lastText = ""
  let lastRefusal: ToldRefusal | undefined
  const { policy: policyField, limit: limitField } = dialect
  const beforeCost = dialect.cost === undefined ? undefined : `;${dialect.cost}=`

  return (decision) => {
    let policyList = ""
    let limitList = ""
    const { checks } = decision
    // The usual case is a single check, for which the lines can be reused.
    if (checks.length === 1) {
      const check = checks[0] as PolicyCheck
      if (first?.line !== undefined && check.limit === first.limit && check.policy === first.name) {
        if (!isListed(decision, check)) return [first.line]
        return check.allowed
          ? [first.line, [limitField, limitMember(first, check)]]
          : refusalLines(first, first.line, secondsOf(first, check), check.cost)
      }
    }
    for (let i = 0; i < checks.length; i++) {
      const check = checks[i] as PolicyCheck
      const text = textOf(check)
      if (text === undefined || !hasLimit(check)) continue
      policyList = append(policyList, policyMember(text, check))
      if (isListed(decision, check)) limitList = append(limitList, limitMember(text, check))
    }
    if (policyList === "") return NONE
    if (limitList === "") return [[policyField, policyList]]
    return [
      [policyField, policyList],
      [limitField, limitList],
    ]
  }

  /**
   * Returns the lines of a refusal. During a flood the lines stay the same for a second, so the latest lines are
   * cached.
   */
  function refusalLines(
    text: MemberText,
    line: HeaderLine,
    seconds: number | undefined,
    cost: number,
  ): readonly HeaderLine[] {
    if (lastRefusal === undefined || lastRefusal.seconds !== seconds || lastRefusal.cost !== cost) {
      const lines: readonly HeaderLine[] = [line, [limitField, memberOf(text, 0, seconds, cost)]]
      lastRefusal = { seconds, cost, lines }
    }
    return lastRefusal.lines
  }

  function secondsText(seconds: number | undefined): string {
    if (seconds !== lastSeconds) {
      lastSeconds = seconds
      lastText = seconds === undefined ? "" : beforeSeconds + seconds
    }
    return lastText
  }

  function limitMember(text: MemberText, check: PolicyCheck): string {
    return memberOf(text, remainingTold(check), secondsOf(text, check), check.cost)
  }

  function memberOf(text: MemberText, remaining: number, seconds: number | undefined, cost: number): string {
    const costText = beforeCost === undefined ? "" : beforeCost + fieldInteger(cost)
    return flat(text.beforeRemaining + (decimal(remaining) + secondsText(seconds) + costText))
  }
}

const NONE: readonly HeaderLine[] = []

/**
 * Returns the member as a flat string. V8 represents a concatenated string as a tree of its parts. Node checks each
 * header value with a regular expression, which is slow on such a tree. Reading a character makes V8 flatten the
 * string, but only if the character affects the result of this function.
 */
function flat(member: string): string {
  return member.charCodeAt(0) === QUOTE ? member : ""
}

/** Each member begins with its name, which is quoted. */
const QUOTE = 34

function isListed(decision: Decision, check: PolicyCheck): boolean {
  return (decision.allowed ? check.policy === decision.policy : !check.allowed) && isCounted(decision, check)
}

function secondsOf({ windowS }: MemberText, check: PolicyCheck): number | undefined {
  return windowS === undefined ? undefined : secondsTold(check, windowS)
}

function policyMember(text: MemberText, check: PolicyCheck): string {
  return check.limit === text.limit
    ? (text.line?.[1] as string)
    : text.beforeLimit + fieldInteger(check.limit) + text.afterLimit
}

function append(list: string, member: string): string {
  return list === "" ? member : `${list}, ${member}`
}

/** Units that the draft registers under another name (draft-ietf-httpapi-ratelimit-headers-11, parameter qu). */
const REGISTERED: ReadonlyMap<string, string> = new Map([["bytes", "content-bytes"]])

function memberText(
  { name, limit, windowMs, unit }: HeaderPolicy & { readonly windowMs: number },
  dialect: MemberDialect,
): MemberText {
  const item = serializeString(name)
  const windowS = unit === PERMITS ? undefined : windowSeconds(windowMs)
  const beforeLimit = `${item};q=`
  // Without a unit, a policy counts requests. A client must not take tokens for requests, so any other unit is named.
  const unitText = unit === REQUESTS ? "" : `;qu=${serializeString(REGISTERED.get(unit) ?? unit)}`
  const afterLimit = windowS === undefined ? unitText : `${unitText};w=${windowS}`
  return {
    name,
    windowS,
    limit,
    line: limit === undefined ? undefined : [dialect.policy, beforeLimit + fieldInteger(limit) + afterLimit],
    beforeLimit,
    afterLimit,
    beforeRemaining: `${item};${dialect.remaining}=`,
  }
}
