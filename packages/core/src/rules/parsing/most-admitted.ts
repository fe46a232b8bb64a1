import type { ParsedRule } from "../rule.ts"
import { burstOf, limitOf } from "./override-members.ts"
import { mostUnits, percentOf } from "./units.ts"

/** Returns the most units that a rule with this limit ever admits in one burst. No request may cost more. */
export function mostAdmitted(rule: ParsedRule, limit: number): number {
  const { throttle } = rule
  if (limit === 0) return 0
  const capacity = capacityUnder(rule, limit)
  if (throttle.kind === "soft") return capacity + percentOf(limit, throttle.percent)
  if (throttle.kind === "elastic") return Math.max(capacity, throttle.ceiling ?? mostCounted(rule, capacity))
  return capacity
}

/**
 * Returns the units that fit into an unused counter under this limit. If clients differ, returns the smallest number.
 */
function capacityUnder({ overrides, burst, limit: own }: ParsedRule, limit: number): number {
  let least = typeof own === "number" && own !== limit ? Number.POSITIVE_INFINITY : (burst ?? limit)
  for (const override of overrides?.values() ?? []) {
    if (limitOf(override) === limit) least = Math.min(least, burstOf(override) ?? burst ?? limit)
  }
  return Number.isFinite(least) ? least : (burst ?? limit)
}

/**
 * Returns the default ceiling of an elastic rule: the most units that are counted exactly with the unit of time that
 * the limit alone needs. A bucket keeps its level in parts of that unit, so it must not change with the load. If the
 * limit varies, `capacity` is undefined, and the ceiling is the highest of any limit.
 */
export function mostCounted({ algorithm, windowMs }: ParsedRule, capacity: number | undefined): number {
  const inMs = Math.floor(Number.MAX_SAFE_INTEGER / windowMs) - 1
  return capacity !== undefined && capacity <= inMs ? inMs : mostUnits(algorithm, windowMs)
}
