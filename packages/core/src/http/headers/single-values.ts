import type { Decision, PolicyCheck } from "../../decision/decision.ts"
import { bindingCheck } from "../../decision/decision-record.ts"
import type { HeaderLine } from "../../ground/answer.ts"
import { REQUESTS } from "../../ground/policy.ts"
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

/** The field names of a dialect that reports one policy, with one number in each field. */
export interface SingleValueNames {
  readonly limit: string
  readonly remaining: string
  readonly reset: string
  /** The field that lists all policies without their names. Undefined if the dialect has no such field. */
  readonly policy?: string
}

/** A function that formats the point in time that is `seconds` seconds from now, as a dialect requires. */
type ResetForm = (seconds: number, nowMs: () => number) => number

interface ValueText {
  readonly windowS: number
  /** The rule's own limit; undefined if a function returns it. A client with an override has another limit. */
  readonly ownLimit: number | undefined
  readonly ownLimitText: string
  readonly window: string
}

/**
 * Returns the writer of a dialect with one number in each field: `RateLimit-Limit: 100`, `RateLimit-Remaining: 50`,
 * `RateLimit-Reset: 30`. The numbers describe the strictest policy that counts requests, because no
 * field names a unit.
 */
export function compileSingleValues(
  policies: readonly HeaderPolicy[],
  names: SingleValueNames,
  resetForm: ResetForm,
): HeaderWriter {
  const textOf = textsOf(
    policies.filter(({ shadow, unit }) => !shadow && unit === REQUESTS),
    valueText,
  )

  return (decision, nowMs) => {
    const lines: HeaderLine[] = []
    let policyList = ""
    const binding = bindingName(decision)
    for (const check of decision.checks) {
      const text = textOf(check)
      if (text === undefined || !hasLimit(check)) continue
      const limit = check.limit === text.ownLimit ? text.ownLimitText : String(fieldInteger(check.limit))
      policyList += policyList === "" ? limit + text.window : `, ${limit}${text.window}`
      if (check.policy !== binding) continue
      lines.push([names.limit, limit])
      if (isCounted(decision, check)) pushCounts(lines, text, check, nowMs)
    }
    if (names.policy !== undefined && policyList !== "") lines.push([names.policy, policyList])
    return lines
  }

  function pushCounts(lines: HeaderLine[], text: ValueText, check: PolicyCheck, nowMs: () => number): void {
    lines.push([names.remaining, decimal(remainingTold(check))])
    const seconds = secondsTold(check, text.windowS)
    if (seconds !== undefined) lines.push([names.reset, String(fieldInteger(resetForm(seconds, nowMs)))])
  }
}

/** Returns the name of the strictest policy that counts requests. Undefined if there is none. */
function bindingName({ policy, checks }: Decision): string | undefined {
  if (checks.every(({ unit }) => unit === REQUESTS)) return policy
  return bindingCheck(checks.filter(({ unit }) => unit === REQUESTS))?.policy
}

/** Returns the number of seconds from now. */
export const fromNow: ResetForm = (seconds) => seconds

/**
 * Returns the time in epoch seconds. Rounds the current time up, so that a client cannot retry a fraction of a second
 * too early.
 */
export const sinceEpoch: ResetForm = (seconds, nowMs) => Math.ceil(nowMs() / 1000) + seconds

function valueText({ limit, windowMs }: HeaderPolicy & { readonly windowMs: number }): ValueText {
  const windowS = windowSeconds(windowMs)
  return {
    windowS,
    ownLimit: limit,
    ownLimitText: limit === undefined ? "" : String(fieldInteger(limit)),
    window: `;w=${windowS}`,
  }
}
