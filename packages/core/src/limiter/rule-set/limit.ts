import { compilePolicy, releases } from "../../algorithms/kinds.ts"
import { parseDuration } from "../../ground/duration.ts"
import { isUnits, type Policy } from "../../ground/policy.ts"
import type { Warner } from "../../ground/warnings.ts"
import { partitionText } from "../../request/partition.ts"
import type { FieldReader, RequestFacts } from "../../request/request.ts"
import { canonicalValue, compileValueTable } from "../../rules/matching/value-list.ts"
import { burstOf, limitOf, type Override } from "../../rules/parsing/override-members.ts"
import { mostExactUnits, mostUnits, percentOf } from "../../rules/parsing/units.ts"
import type { ParsedRule } from "../../rules/rule.ts"
import { Callback, type CallbackContext, wrong } from "../callbacks/callback.ts"
import type { CallbackResults } from "../callbacks/callback-results.ts"
import { warnOfUnit } from "./rule-doubts.ts"

/** Number of compiled limits cached per rule. Most apps have few limits, but a limit function may return any number. */
const MAX_LIMITS = 1_000

/**
 * Number of windows remembered per rule. Plans need fewer, and a function that returns another window for each request
 * would not limit anybody.
 */
const MAX_WINDOWS = 100

/**
 * Returns the policy of a rule with a fixed limit. For a rule with a limit function, returns a function that returns
 * the policy of a request. If the limit function returns Infinity, the rule does not apply and the policy is
 * undefined. The policy is also undefined while the promise of the limit function is pending.
 *
 * If the function fails, a warning is logged once, and the latest limit that the function has returned applies. A
 * limit of 0 or Infinity is not reused, because it was meant for one client. If the function has returned no other
 * limit yet, the policy is `unknown`.
 */
export function compileLimit(
  rule: ParsedRule,
  counter: string,
  unknown: Policy,
  context: CallbackContext,
): Policy | ((results: CallbackResults) => Policy | undefined) {
  const { name, algorithm, windowMs, calendar, throttle, limit } = rule
  const percent = throttle.kind === "soft" ? throttle.percent : 0
  if (typeof limit === "number") return policyWith(rule, counter, limit)

  const policies = new Map<number, Policy>()
  const most = largestLimit(mostUnits(algorithm, windowMs, calendar !== undefined), rule.burst, percent)
  let latest: number | undefined
  const callback = new Callback(limit, context, {
    read(result) {
      if (result === Number.POSITIVE_INFINITY) return result
      if (!isUnits(result)) return wrong(result)
      const sound = Math.min(result, most)
      if (sound > 0) latest = sound
      return sound
    },
    failed(what, cause) {
      context.warner.once(
        "SLUICE_INVALID_LIMIT",
        `The ${releases(rule) ? "concurrent" : "limit"} function of rule "${name}" ${what}. It must return 0 or a positive whole number, Infinity for no ` +
          "limit, or a promise of it. Until it does, the latest limit above 0 that it has returned applies. Before the first, requests are refused with 503.",
        name,
        cause,
      )
      return latest
    },
  })
  return (results) => {
    const units = results.resultOf(callback)
    if (units === undefined) return results.isPending ? undefined : unknown
    if (units === Number.POSITIVE_INFINITY) return undefined
    let policy = policies.get(units)
    if (policy === undefined) {
      if (policies.size >= MAX_LIMITS) policies.clear()
      policy = policyWith(rule, counter, units)
      policies.set(units, policy)
    }
    return policy
  }
}

/**
 * Compiles a window function into a function that returns the policy of a request in the request's own window, with
 * counters of that window. Takes the policy that the rule's longest window would have, or undefined while that is
 * pending. Returns undefined while the promise of the window function is pending. Returns undefined instead of the
 * function if the rule has one window.
 *
 * If the window function fails, a warning is logged once, and the latest window that it has returned applies. If it has
 * returned no window yet, the policy is `unknown`.
 */
export function compileWindow(
  rule: ParsedRule,
  counterOf: (windowMs: number) => string,
  unknown: Policy,
  context: CallbackContext,
): WindowPolicies | undefined {
  const { name, windowOf } = rule
  if (windowOf === undefined) return undefined
  const callback = windowCallback(rule, windowOf, context)
  const policies = new Map<number, Map<Policy, Policy>>()
  let compiled = 0
  const policiesOf = (windowMs: number): Map<Policy, Policy> => {
    let known = policies.get(windowMs)
    if (known === undefined) {
      if (policies.size >= MAX_WINDOWS) {
        warnOfManyWindows(name, context.warner)
        const [oldest] = policies.keys()
        policies.delete(oldest as number)
      }
      known = new Map()
      policies.set(windowMs, known)
    }
    return known
  }
  return {
    policyOf(longest, results) {
      const windowMs = results.resultOf(callback)
      if (windowMs === undefined) return results.isPending ? undefined : unknown
      if (longest === undefined || longest === unknown) return longest
      const known = policiesOf(windowMs)
      let policy = known.get(longest)
      if (policy === undefined) {
        if (compiled >= MAX_LIMITS) {
          for (const each of policies.values()) each.clear()
          compiled = 0
        }
        compiled += 1
        policy = compilePolicy({ ...longest, windowMs, counter: counterOf(windowMs) })
        known.set(longest, policy)
      }
      return policy
    },
    counters(results) {
      const windowMs = results?.resultOf(callback)
      if (windowMs !== undefined) policiesOf(windowMs)
      return Array.from(policies.keys(), (ms) => ({ windowMs: ms, counter: counterOf(ms) }))
    },
  }
}

/** Returns the callback whose result is a window in milliseconds. */
function windowCallback(
  { name, windowMs: longestMs, buckets = 1 }: ParsedRule,
  windowOf: (request: unknown) => unknown,
  context: CallbackContext,
): Callback<number | undefined> {
  const { warner } = context
  let latest: number | undefined
  return new Callback(windowOf, context, {
    read(result) {
      const ms = exactWindow(result, longestMs)
      if (ms === undefined || ms < buckets || ms > longestMs) return wrong(result)
      if (typeof result === "number") warnOfUnit(name, result, warner)
      latest = ms
      return ms
    },
    failed(what, cause) {
      const least = buckets > 1 ? `at least ${buckets} ms and ` : ""
      warner.once(
        "SLUICE_INVALID_LIMIT",
        `The window function of rule "${name}" ${what}. It must return a window of ${least}at most 366 days, such as "1 minute" or 60000, ` +
          "or a promise of it. Until it does, the latest window that it has returned applies. Before the first, requests are refused with 503.",
        `window of ${name}`,
        cause,
      )
      return latest
    },
  })
}

/**
 * Returns a window in milliseconds. Rounds it up to whole seconds if a limit that fits into the longest window could
 * otherwise not be counted exactly. Returns undefined if the window is not valid.
 */
function exactWindow(window: unknown, longestMs: number): number | undefined {
  const ms = parseDuration(window)
  if (ms === undefined || mostExactUnits(ms) >= mostExactUnits(longestMs)) return ms
  return Math.ceil(ms / 1_000) * 1_000
}

function warnOfManyWindows(name: string, warner: Warner): void {
  warner.once(
    "SLUICE_MANY_WINDOWS",
    `The window function of rule "${name}" has returned more than ${MAX_WINDOWS} windows. Each window has its own counter, ` +
      "so a client whose window changes is hardly limited. Return one of a few windows, such as one for each plan.",
    name,
  )
}

/** The policies of a rule whose windows depend on the request or on the time. */
export interface WindowPolicies {
  policyOf(longest: Policy | undefined, results: CallbackResults, partition: string): Policy | undefined
  /** Returns the counters of the remembered windows, and of the request's window if there is a request. */
  counters(results?: CallbackResults): readonly Pick<Policy, "windowMs" | "counter">[]
}

/**
 * Compiles the overrides of a rule into a function that returns a client's policy by the partition of a request. The
 * function returns undefined for clients without an override. Returns undefined if the rule has no overrides.
 * Overrides with the same limit share a policy.
 */
export function compileOverrides(
  rule: ParsedRule,
  counter: string,
  clientAddress: FieldReader,
  hide: (partition: string) => string = String,
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
      // The partition of an IPv6 client is a network, which may have several overrides. A hashed partition begins
      // with "#".
      const address = /[:#]/.test(partition) ? clientAddress(facts, request) : partition
      return address === undefined ? undefined : policyFor(address)
    }
  }
  const policies = new Map(
    entries.map(([value, policy]) => [hide(partitionText([canonicalValue(field, value)])), policy]),
  )
  return (partition) => policies.get(partition)
}

/** Returns the policy of a rule under this limit. */
export function policyWith(rule: ParsedRule, counter: string, limit: number): Policy {
  const { throttle } = rule
  const extra = throttle.kind === "soft" ? percentOf(limit, throttle.percent) : 0
  return compilePolicy({ ...policyWithout(rule, counter), limit, ...(extra > 0 && { extra }) })
}

/**
 * Returns the members of a rule's policies that do not depend on its limit. These members identify the rule's
 * counters.
 */
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
    ...(refill === "periodic" && { refill }),
    ...(countRejected && { countRejected }),
  }
}

/**
 * Returns the largest limit under which at most `most` units are counted, including the extra units of soft
 * throttling.
 */
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
