import type { ParsedRule } from "../../rules/parsed-rule.ts"
import { mostUnits, percentOf } from "../../rules/units.ts"

/** The most units that a rule ever admits at once where its limit is so much: no request may cost more. */
export function mostAdmitted(rule: ParsedRule, limit: number): number {
  const { burst, throttle } = rule
  if (limit === 0) return 0
  const capacity = burst ?? limit
  if (throttle.kind === "soft") return capacity + percentOf(limit, throttle.percent)
  if (throttle.kind === "elastic") return Math.max(capacity, throttle.ceiling ?? mostCounted(rule, capacity))
  return capacity
}

/**
 * The ceiling of an elastic rule that names none: as many units as are counted exactly without counting time more coarsely
 * than the limit by itself is counted. What a bucket holds is kept in parts of its unit of time, which must not change with
 * the load. For limits that vary, the capacity is undefined: the most that any of them has.
 */
export function mostCounted({ algorithm, windowMs }: ParsedRule, capacity: number | undefined): number {
  const inMs = Math.floor(Number.MAX_SAFE_INTEGER / windowMs) - 1
  // Stryker disable next-line ConditionalExpression: undefined is below no number
  return capacity !== undefined && capacity <= inMs ? inMs : mostUnits(algorithm, windowMs)
}
