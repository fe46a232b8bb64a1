import type { ParsedRule } from "../rule.ts"
import { burstOf, limitOf } from "./override-members.ts"
import { mostUnits, percentOf } from "./units.ts"

/**
 * Returns the maximum number of units that a rule with this limit admits in one burst. A request of a higher cost is
 * always refused.
 */
export function mostAdmitted(rule: ParsedRule, limit: number): number {
  const { throttle } = rule
  if (limit === 0) return 0
  const capacity = capacityUnder(rule, limit)
  if (throttle.kind === "soft") return capacity + percentOf(limit, throttle.percent)
  if (throttle.kind === "elastic") return Math.max(capacity, throttle.ceiling ?? mostCounted(rule, capacity))
  return capacity
}

/**
 * Returns the units that fit into an unused counter under this limit. If clients with this limit have different
 * bursts, returns the smallest number.
 */
function capacityUnder({ overrides, burst, limit: own }: ParsedRule, limit: number): number {
  let least = typeof own === "number" && own !== limit ? Number.POSITIVE_INFINITY : (burst ?? limit)
  for (const override of overrides?.values() ?? []) {
    if (limitOf(override) === limit) least = Math.min(least, burstOf(override) ?? burst ?? limit)
  }
  return Number.isFinite(least) ? least : (burst ?? limit)
}

/**
 * Returns the default ceiling of an elastic rule. The ceiling is the maximum number of units that can be counted
 * exactly in the unit of time of the limit. A bucket stores its level in fractions of that unit, so the unit must not
 * change with the load. If the limit varies, `capacity` is undefined, and the ceiling is the highest for any limit.
 */
export function mostCounted(
  { algorithm, windowMs, calendar }: ParsedRule,
  capacity: number | undefined,
): number {
  if (calendar !== undefined) return mostUnits(algorithm, windowMs, true)
  const inMs = Math.floor(Number.MAX_SAFE_INTEGER / windowMs) - 1
  return capacity !== undefined && capacity <= inMs ? inMs : mostUnits(algorithm, windowMs)
}
