import type { Algorithm, CounterState } from "../algorithms/algorithm.ts"
import { algorithmOf } from "../algorithms/kinds.ts"
import { ceilingOf } from "../ground/policy.ts"
import type { Check, Counted, CounterReading, StoreReading, StoreResult } from "./store.ts"

/** A check that is being decided, with its counter's state and the units that it has taken. */
export interface PendingCheck {
  /** The check of the counter. */
  readonly check: Check
  /** The algorithm of the check's policy. */
  readonly algorithm: Algorithm
  /** The counter's state, including the units of this request so far. */
  state: CounterState
  /** Units that the check has taken. */
  taken: number
}

/**
 * Whether the check's refusal, or the refusal of the check before it, may be counted. If so, the store reads every
 * counter of the request.
 */
export function countsRefusals({ policy, shadow }: Check): boolean {
  return !shadow && (policy.countRejected === true || policy.algorithm === "penalty")
}

/**
 * Returns the states of a refused request's counters after counting its refusals. `before` contains the states before
 * the request. The refusal of each check that would have been refused alone is counted. If the check's policy has
 * `countRejected`, its units count. If a penalty directly follows the check in the list, the refusal counts in the
 * penalty's counter. Shadow checks, and costs that can never fit, are not counted. All checks of the same counter
 * have the same resulting state.
 */
export function statesAfterRefusal(
  pending: readonly PendingCheck[],
  before: readonly CounterState[],
  nowMs: number,
): readonly CounterState[] {
  const states = [...before]
  pending.forEach((one, i) => {
    const { policy, cost } = one.check
    if (!countsRefusals(one.check)) return
    const place = policy.algorithm === "penalty" ? i - 1 : i
    const refused = pending[place]
    if (refused === undefined || !isRefused(refused, before[place] as CounterState, nowMs)) return
    const state = one.algorithm.withRejected(states[i] as CounterState, policy, cost, nowMs)
    // If the state has not changed, each check keeps the state that follows from its own limit.
    if (state === states[i]) return
    pending.forEach((other, j) => {
      if (isSameCounter(other, one)) states[j] = state
    })
  })
  return states
}

/**
 * Whether the check alone is refused for now. False for a cost that can never fit, because such a cost does not show
 * how often the client sends requests.
 */
function isRefused({ check, algorithm }: PendingCheck, state: CounterState, nowMs: number): boolean {
  const { policy, cost, shadow } = check
  return !shadow && cost <= ceilingOf(policy) && !algorithm.admits(state, policy, cost, nowMs)
}

function isSameCounter({ check: one }: PendingCheck, { check: other }: PendingCheck): boolean {
  return one.policy.counter === other.policy.counter && one.partition === other.partition
}

/**
 * Takes the units of every check and updates the check's `state` and `taken`. Returns whether all checks were
 * admitted, except shadow checks. Checks of the same counter include each other's units. If the result is false, do
 * not use the states.
 */
export function takeTogether(pending: readonly PendingCheck[], nowMs: number): boolean {
  for (let i = 0; i < pending.length; i++) {
    const one = pending[i] as PendingCheck
    const { policy, cost, shadow } = one.check
    // No closure here, because it would slow down every request with several rules.
    for (let j = i - 1; j >= 0; j--) {
      const other = pending[j] as PendingCheck
      if (other.taken === 0 || !isSameCounter(other, one)) continue
      one.state = other.state
      break
    }
    if (one.algorithm.admits(one.state, policy, cost, nowMs)) {
      one.state = one.algorithm.withUnits(one.state, policy, cost, nowMs)
      one.taken = cost
    } else if (!shadow) return false
  }
  return true
}

/** Returns the result that a `take` of these checks would return at the time of the reading. Nothing is counted. */
export function peekResult(
  checks: readonly Check[],
  { counters, ...reading }: StoreReading,
): StoreResult & { readonly checks: readonly Counted[] } {
  const pending = checks.map((check, i): PendingCheck => {
    const { state } = counters[i] as CounterReading
    return { check, algorithm: algorithmOf(check.policy), state, taken: 0 }
  })
  const granted = takeTogether(pending, reading.nowMs)
  return { ...reading, granted, checks: counters.map((counter) => ({ ...counter, taken: 0 })) }
}
