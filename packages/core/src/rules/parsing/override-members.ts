import * as v from "valibot"
import { integer, record, type Schema, says, strict } from "../../ground/shape.ts"
import type { RuleOverride } from "../rule.ts"
import { VALUE } from "./match-members.ts"
import { POSITIVE } from "./units.ts"

/** An override in its short or its long form. */
export type Override = number | RuleOverride
type Overrides = Readonly<Record<string, Override>>

/** An override in its long form. */
export const overrideShape = strict("an override", {
  limit: integer(says("a limit", POSITIVE), 1),
  burst: v.optional(integer(says("a burst", POSITIVE), 1)),
})
const overrideLimit = integer(
  says(
    "a limit",
    `${POSITIVE}, or an object with a limit; to refuse a client, list it in deny, and to exempt it, in allow`,
  ),
  1,
)
/**
 * An override in either form. An object or an array is checked as an object, so that the message describes its
 * members.
 */
export const override: Schema = v.lazy((value) =>
  typeof value === "object" && value !== null ? overrideShape : overrideLimit,
)
/** The shape of a rule's overrides. */
export const overridesShape: Schema = record(
  v.pipe(v.string(VALUE), v.minLength(1, VALUE)),
  override,
  says("an object of overrides", 'an object such as {"ann": 2, "vip-7": {"limit": 500}}'),
)

/** Returns a copy of an override, in its short form if the override does not set a burst. */
function shortest(override: Override): Override {
  const [limit, burst] = [limitOf(override), burstOf(override)]
  return burst === undefined ? limit : { limit, burst }
}

/** Returns the limit of an override. */
export function limitOf(override: Override): number {
  return typeof override === "number" ? override : override.limit
}

/** Returns the burst of an override, or undefined if the override has no burst. */
export function burstOf(override: Override | undefined): number | undefined {
  return typeof override === "object" ? override.burst : undefined
}

/** Returns copies of the overrides by client. */
export function fillOverrides(overrides: Overrides): ReadonlyMap<string, Override> {
  const filled = new Map<string, Override>()
  for (const value in overrides) filled.set(value, shortest(overrides[value] as Override))
  return filled
}

/** Returns the stored form of the overrides. */
export function storeOverrides(overrides: Overrides): unknown {
  return Object.fromEntries(fillOverrides(overrides))
}
