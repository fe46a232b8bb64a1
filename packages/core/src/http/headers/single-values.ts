import type { PolicyCheck } from "../../decision/decision.ts"
import type { HeaderLine } from "../../limiter/options/answer-options.ts"
import {
  decimal,
  fieldInteger,
  type HeaderPolicy,
  type HeaderWriter,
  isCounted,
  remainingTold,
  secondsTold,
  windowSeconds,
} from "./header-values.ts"
import { textsOf } from "./rule-texts.ts"

/** The field names of a dialect that tells of one policy, in a field a number. */
interface SingleValueNames {
  readonly limit: string
  readonly remaining: string
  readonly reset: string
  /** The list of all policies, without names; a dialect without it has undefined. */
  readonly policy: string | undefined
}

/** How a dialect writes the moment that lies `seconds` ahead. */
type ResetForm = (seconds: number, nowMs: () => number) => number

interface ValueText {
  readonly windowS: number
  /** Undefined when the limit varies. */
  readonly limit: string | undefined
  readonly window: string
}

/**
 * The writer of the dialects with one number a field: `RateLimit-Limit: 100`, `RateLimit-Remaining: 50`,
 * `RateLimit-Reset: 30`. They tell of the policy that binds.
 */
export function compileSingleValues(
  policies: readonly HeaderPolicy[],
  names: SingleValueNames,
  resetForm: ResetForm,
): HeaderWriter {
  const textOf = textsOf(
    policies.filter(({ shadow }) => !shadow),
    valueText,
  )

  return (decision, nowMs) => {
    const lines: HeaderLine[] = []
    let policyList = ""
    for (const check of decision.checks) {
      const text = textOf(check.policy)
      if (text === undefined) continue
      const limit = text.limit ?? String(fieldInteger(check.limit))
      policyList += policyList === "" ? limit + text.window : `, ${limit}${text.window}`
      if (check.policy !== decision.policy) continue
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

/** Seconds from now. */
export const fromNow: ResetForm = (seconds) => seconds

/** Epoch seconds; the present is rounded up, since a client must not come a fraction of a second too early. */
export const sinceEpoch: ResetForm = (seconds, nowMs) => Math.ceil(nowMs() / 1000) + seconds

function valueText({ limit, windowMs }: HeaderPolicy): ValueText {
  const windowS = windowSeconds(windowMs)
  return {
    windowS,
    limit: limit === undefined ? undefined : String(fieldInteger(limit)),
    window: `;w=${windowS}`,
  }
}
