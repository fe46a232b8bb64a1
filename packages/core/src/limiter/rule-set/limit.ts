import { textOf } from "../../ground/errors.ts"
import { ignoreRejection } from "../../ground/maybe-promise.ts"
import type { Policy } from "../../ground/policy.ts"
import type { Warner } from "../../ground/warnings.ts"
import { partitionText } from "../../request/partition.ts"
import type { FieldReader, RequestFacts } from "../../request/request.ts"
import { canonicalValue, compileValueTable } from "../../rules/matching/value-list.ts"
import { burstOf, limitOf, type Override, type ParsedRule } from "../../rules/parsing/parsed-rule.ts"
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
  if (typeof rule.limit === "number") {
    const policy = policyWith(rule, counter, rule.limit)
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
      policy = policyWith(rule, counter, units)
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

/**
 * Compiles the policies of clients with an override, by the partition of a request. The function returns undefined for
 * other clients. Undefined if the rule has no overrides. Overrides with the same limit share a policy.
 */
export function compileOverrides(
  rule: ParsedRule,
  counter: string,
  clientAddress: FieldReader,
): ((partition: string, facts: RequestFacts, request: unknown) => Policy | undefined) | undefined {
  const { overrides } = rule
  if (overrides === undefined) return undefined
  // Overrides are allowed only in a rule with a single field.
  const field = rule.fields[0] as string
  const byLimit = new Map<number, Policy>()
  const policyOf = (override: Override): Policy => {
    const limit = limitOf(override)
    const burst = burstOf(override)
    if (burst !== undefined) return policyWith({ ...rule, burst }, counter, limit)
    const policy = byLimit.get(limit) ?? policyWith(rule, counter, limit)
    byLimit.set(limit, policy)
    return policy
  }
  const entries = Array.from(overrides, ([value, override]) => [value, policyOf(override)] as const)
  if (field === "ip") {
    const policyFor = compileValueTable("ip", entries)
    return (partition, facts, request) => {
      // The partition of an IPv6 client is a network, which may have several overrides.
      const address = partition.includes(":") ? clientAddress(facts, request) : partition
      return address === undefined ? undefined : policyFor(address)
    }
  }
  const policies = new Map(
    entries.map(([value, policy]) => [partitionText([canonicalValue(field, value)]), policy]),
  )
  return (partition) => policies.get(partition)
}

function policyWith(rule: ParsedRule, counter: string, limit: number): Policy {
  const { throttle } = rule
  const extra = throttle.kind === "soft" ? percentOf(limit, throttle.percent) : 0
  return { ...policyWithout(rule, counter), limit, ...(extra > 0 && { extra }) }
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
