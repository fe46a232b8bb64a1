import { textOf } from "../../ground/errors.ts"
import { ignoreRejection } from "../../ground/maybe-promise.ts"
import type { Policy } from "../../ground/policy.ts"
import type { Warner } from "../../ground/warnings.ts"
import type { ParsedRule } from "../../rules/parsing/parsed-rule.ts"
import { mostUnits, percentOf } from "../../rules/parsing/units.ts"
import { yieldedText } from "../callbacks.ts"

/** Limits of one rule that are remembered compiled: plans are few, and a function could yield anything. */
const MAX_LIMITS = 1_000

/**
 * The policy of a request: always the same one, or by the rule's limit function. Infinity, from the function, means
 * that the rule does not apply: undefined.
 *
 * A function that throws, or yields anything but a whole number from 0 up, is said once, and the smallest limit above 0
 * that it has yielded so far applies (1 before there is one): a bug in it neither opens the service nor closes it, as the 0 of
 * one blocked client would for all others.
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
      `The limit function of rule "${name}" ${what}. It must yield a whole number from 0 up, or Infinity for no ` +
        "limit. Until it does, the smallest limit above 0 that it has yielded applies.",
      name,
      error,
    )
    return Number.isFinite(smallest) ? smallest : 1
  }
}

/** What a rule's policies have whatever its limit is: all that identifies its counters. */
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

/** The largest limit with which no more than `most` units are counted, those above the limit too. */
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
