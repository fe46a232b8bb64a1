import * as v from "valibot"
import { DURATION_ACCEPTED, parseDuration } from "../../ground/duration.ts"
import type { Penalty } from "../../ground/policy.ts"
import { integer, says, strict } from "../../ground/shape.ts"
import type { RulePenalty } from "../rule.ts"
import { storeDuration } from "./stored-size.ts"
import { POSITIVE } from "./units.ts"

/** Maximum number of steps of growing blocks. The counter of a penalty can store up to 31 steps. */
const MOST_BLOCKS = 16
const BLOCKS = says("a valid list of durations", `1 to ${MOST_BLOCKS} durations`)
const SHRINKS = says(
  "at least as long as the length before it",
  'lengths from short to long, such as ["1 minute", "1 hour"]',
)
const isDuration = (value: unknown): boolean => parseDuration(value) !== undefined
const duration = v.custom(isDuration, says("a duration", DURATION_ACCEPTED))
const growing = v.pipe(
  v.array(duration),
  v.minLength(1, BLOCKS),
  v.maxLength(MOST_BLOCKS, BLOCKS),
  // A set in DynamoDB has no order, so its members may arrive in any order.
  v.checkItems(
    (length, index, all) =>
      index === 0 || Number(parseDuration(length)) >= Number(parseDuration(all[index - 1])),
    SHRINKS,
  ),
)
const single = v.custom(
  isDuration,
  says("a duration", `${DURATION_ACCEPTED}, or a list of 1 to ${MOST_BLOCKS} of them`),
)

/** The shape of a penalty. */
export const penaltyShape = strict("a penalty", {
  refusals: integer(says("a valid number of refusals", POSITIVE), 1),
  within: v.optional(duration),
  for: v.lazy((value) => (Array.isArray(value) ? growing : single)),
})

/** Returns a valid penalty with its times in milliseconds. */
export function fillPenalty({ refusals, within, for: blocked }: RulePenalty, windowMs: number): Penalty {
  const withinMs = within === undefined ? windowMs : (parseDuration(within) as number)
  return { refusals, withinMs, forMs: [blocked].flat().map((each) => parseDuration(each) as number) }
}

/** Returns the stored form of the penalty. */
export function storePenalty({ refusals, within, for: blocked }: RulePenalty): unknown {
  const lengths = [blocked].flat().map(storeDuration)
  return {
    refusals,
    within: within && storeDuration(within),
    for: lengths.length === 1 ? lengths[0] : lengths,
  }
}
