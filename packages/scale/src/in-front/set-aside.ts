import { algorithmOf, type Check, type Counted, type StoreResult } from "@sluice/core/stores"

/** Units that this process has set aside for a check, until the shared store has decided the other checks. */
export interface SetAside {
  readonly counted: Counted
  /** The server's time of the state in `counted`. */
  readonly serverMs: number
}

/**
 * Returns the result of a whole request. `aside[i]` is what was set aside for `checks[i]`, undefined if the store has
 * decided that check. `answer` has the results of those checks only. The whole result has the latest of all times. If
 * the store refused, the units that were set aside are reported as not taken.
 */
export function wholeResult(
  checks: readonly Check[],
  aside: readonly (SetAside | undefined)[],
  answer: StoreResult,
): StoreResult {
  if (aside.every((one) => one === undefined)) return answer
  let { nowMs } = answer
  for (const one of aside) if (one !== undefined) nowMs = Math.max(nowMs, one.serverMs)
  let next = 0
  const whole = checks.map(({ policy }, i): Counted | undefined => {
    const own = aside[i]
    const counted = own === undefined ? answer.checks[next++] : own.counted
    if (counted === undefined) return undefined
    const { state, taken, after = state, ageMs } = counted
    const algorithm = algorithmOf(policy)
    const isOfMs = own?.serverMs ?? answer.nowMs
    let now = isOfMs === nowMs ? state : algorithm.at(state, policy, nowMs)
    const isReturned = own !== undefined && !answer.granted
    if (isReturned) now = algorithm.withoutUnits(now, policy, taken, after, nowMs)
    return { state: now, taken: isReturned ? 0 : taken, after, ...(ageMs !== undefined && { ageMs }) }
  })
  return { ...answer, nowMs, checks: whole }
}
