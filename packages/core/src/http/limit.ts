import { textOf } from "../errors.ts"
import type { Policy } from "../policy.ts"
import type { ParsedRule } from "../rules/parsed-rule.ts"
import type { Warner } from "../warnings.ts"

/** Limits of one rule that are remembered compiled: plans are few, and a function could yield anything. */
const MAX_LIMITS = 1_000

/**
 * The policy of a request: always the same one, or by the rule's limit function. Infinity, from the function, means
 * that the rule does not apply: undefined.
 *
 * A function that throws, or yields anything but a whole number from 0 up, is said once, and the smallest limit that
 * it has yielded so far applies (1 before there is one): a bug in it neither opens the service nor closes it.
 */
export function compileLimit(
  rule: ParsedRule,
  counter: string,
  warner: Warner,
): (request: unknown) => Policy | undefined {
  const { name, algorithm, windowMs, align } = rule
  const policyOf = (units: number): Policy => ({ name, counter, algorithm, limit: units, windowMs, align })
  if (typeof rule.limit === "number") {
    const policy = policyOf(rule.limit)
    return () => policy
  }

  const limitOf = rule.limit
  const policies = new Map<number, Policy>()
  const most = largestLimit(windowMs)
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
      // Nobody waits for it, so nobody else would handle its rejection.
      if (units instanceof Promise) units.catch(() => undefined)
    } catch (thrown) {
      error = thrown
    }
    if (units === Number.POSITIVE_INFINITY) return units
    if (Number.isSafeInteger(units) && (units as number) >= 0) {
      const sound = Math.min(units as number, most)
      smallest = Math.min(smallest, sound)
      return sound
    }
    const what = error === undefined ? `yielded ${textOf(units)}` : `failed: ${textOf(error)}`
    warner.once(
      "SLUICE_INVALID_LIMIT",
      `The limit function of rule "${name}" ${what}. It must yield a whole number from 0 up, or Infinity for no ` +
        "limit. Until it does, the smallest limit that it has yielded applies.",
      name,
      error,
    )
    return Number.isFinite(smallest) ? smallest : 1
  }
}

/** Beyond it counts times the window are not exact; see the sliding window's arithmetic. */
function largestLimit(windowMs: number): number {
  const unitMs = windowMs % 1000 === 0 ? 1000 : 1
  return Math.floor(Number.MAX_SAFE_INTEGER / (windowMs / unitMs))
}
