import { textOf } from "../../ground/errors.ts"
import { ignoreRejection } from "../../ground/maybe-promise.ts"
import type { Policy } from "../../ground/policy.ts"
import type { Warner } from "../../ground/warnings.ts"
import type { ParsedRule } from "../../rules/parsing/parsed-rule.ts"
import { mostUnits, percentOf } from "../../rules/parsing/units.ts"
import { yieldedText } from "../callbacks.ts"

/** Number of compiled limits cached per rule. An app has few plans, but its function might return any number. */
const MAX_LIMITS = 1_000

/**
 * Compiles the policy of a request: a fixed one, or by the rule's limit function. If the function returns Infinity, the
 * rule does not apply and the policy is undefined.
 *
 * If the function throws or returns an invalid limit, a warning is logged once. The smallest limit above 0 returned so
 * far applies, or 1 if there is none yet. So a bug in the function neither opens the service nor closes it. The 0 of
 * one blocked client must not close it for all others.
 */
export function compileLimit(
  rule: ParsedRule,
  counter: string,
  warner: Warner,
): (request: unknown) => Policy | undefined {
  const { name, algorithm, windowMs, throttle } = rule
  const percent = throttle.kind === "soft" ? throttle.percent : 0
  const policyOf = (limit: number): Policy => {
    const extra = percentOf(limit, percent)
    return { ...policyWithout(rule, counter), limit, ...(extra > 0 && { extra }) }
  }
  if (typeof rule.limit === "number") {
    const policy = policyOf(rule.limit)
    return () => policy
  }

  const limitOf = rule.limit
  const policies = new Map<number, Policy>()
  const most = largestLimit(mostUnits(algorithm, windowMs), rule.burst, percent)
  let smallest = Number.POSITIVE_INFINITY
  return (request) => {
    const units = yielded(request)
    if (units === Number.POSITIVE_INFINITY) return undefined
    let policy = policies.get(units)
    if (policy === undefined) {
      if (policies.size >= MAX_LIMITS) policies.clear()
      policy = policyOf(units)
      policies.set(units, policy)
    }
    return policy
  }

  function yielded(request: unknown): number {
    let units: unknown
    let error: unknown
    try {
      units = limitOf(request)
      ignoreRejection(units)
    } catch (thrown) {
      error = thrown
    }
    if (units === Number.POSITIVE_INFINITY) return units
    if (Number.isSafeInteger(units) && (units as number) >= 0) {
      const sound = Math.min(units as number, most)
      if (sound > 0) smallest = Math.min(smallest, sound)
      return sound
    }
    const what = error === undefined ? yieldedText(units) : `failed: ${textOf(error)}`
    warner.once(
      "SLUICE_INVALID_LIMIT",
      `The limit function of rule "${name}" ${what}. It must return a whole number from 0 up, or Infinity for no ` +
        "limit. Until it does, the smallest limit above 0 that it has returned applies.",
      name,
      error,
    )
    return Number.isFinite(smallest) ? smallest : 1
  }
}

/** Returns the members of a rule's policies that do not depend on its limit. They identify its counters. */
export function policyWithout(rule: ParsedRule, counter: string): Omit<Policy, "limit"> {
  const { name, algorithm, windowMs, align, buckets, burst, refill, countRejected } = rule
  return {
    name,
    counter,
    algorithm,
    windowMs,
    align,
    ...(buckets !== undefined && { buckets }),
    ...(burst !== undefined && { burst }),
    ...(refill !== undefined && { refill }),
    ...(countRejected && { countRejected }),
  }
}

/** Returns the largest limit with which at most `most` units are counted, including those above the limit. */
function largestLimit(most: number, burst: number | undefined, percent: number): number {
  const counted = (limit: number): number => (burst ?? limit) + percentOf(limit, percent)
  if (counted(most) <= most) return most
  let [fits, tooMuch] = [0, most]
  while (tooMuch - fits > 1) {
    const middle = fits + Math.floor((tooMuch - fits) / 2)
    if (counted(middle) <= most) fits = middle
    else tooMuch = middle
  }
  return fits
}
