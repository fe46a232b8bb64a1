import type { Penalty, Policy } from "../ground/policy.ts"
import type { Algorithm, CounterState } from "./algorithm.ts"

/**
 * The penalty blocks a client that is refused repeatedly. The penalty counts a rule's refusals and forgets them
 * `withinMs` after the first refusal. When the count reaches `limit`, a block begins, in which no request is
 * admitted. Refusals during a block do not extend the block. With a limit of 0, refusals never block. An admission
 * does not change the state, because stores count refusals only through `withRejected`.
 *
 * If `forMs` contains several lengths, each length is a step. A block moves the client one step up, at most to the
 * last step, and lasts as long as that step. Each `withinMs` without a refusal moves the client one step down. This
 * time starts at the end of a block, and starts again with each refusal that counts.
 *
 * An operator blocks a client by charging the counter. Each unit is a millisecond of a block that starts now, unless
 * a longer block is in force. An operator's block does not change the client's step. The state during such a block
 * has 0 refusals and stores the length of the block.
 *
 * `previous` is the step times `STEP`, plus a remainder:
 *
 * | state | `current` | remainder |
 * | --- | --- | --- |
 * | refusals that count | their number | twice the milliseconds from the first to the last; 0 on step 0 |
 * | block | refusals | 1 |
 * | operator's block | 0 | its milliseconds |
 * | only a step | 0 | 0 |
 */
export const penalty: Algorithm = {
  at(stored, policy, nowMs) {
    if (stored === undefined) return unusedAt(nowMs)
    // The clock went back. Move a start in the future to now, so that a block does not last longer than the rule says.
    const state = stored.startMs > nowMs ? { ...stored, startMs: nowMs } : stored
    if (nowMs >= penalty.emptyAtMs(state, policy)) return unusedAt(nowMs)
    return isCurrent(state, policy, nowMs) ? state : onStepNow(state, policy, nowMs)
  },

  admits(state, _policy, cost) {
    return cost === 0 || !isBlocked(state)
  },

  used(state, { limit }) {
    return isBlocked(state) ? limit : 0
  },

  retryAfterMs(state, policy, cost, nowMs) {
    return cost === 0 || !isBlocked(state) ? 0 : quietFromMs(state, policy) - nowMs
  },

  resetAfterMs(state, policy, nowMs) {
    return isBlocked(state) ? quietFromMs(state, policy) - nowMs : 0
  },

  endsByRule: true,

  emptyAtMs(state, policy) {
    const step = stepOf(state, policy)
    if (step > 0 || isBlocked(state)) return quietFromMs(state, policy) + step * withinOf(policy)
    return state.startMs + (state.current > 0 ? withinOf(policy) : 0)
  },

  withUnits(state) {
    return state
  },

  withRejected(state, policy, _units, nowMs) {
    const { limit } = policy
    if (limit === 0 || isBlocked(state)) return state
    const step = stepOf(state, policy)
    const current = state.current + 1
    if (current >= limit) {
      return { startMs: nowMs, current, previous: Math.min(step + 1, stepsOf(policy)) * STEP + 1 }
    }
    const startMs = state.current === 0 ? nowMs : state.startMs
    return { startMs, current, previous: step === 0 ? 0 : step * STEP + 2 * (nowMs - startMs) }
  },

  withoutUnits(state, policy, units, _after, nowMs) {
    const restMs = isBlocked(state) ? quietFromMs(state, policy) - nowMs : 0
    if (-units <= restMs) return state
    return { startMs: nowMs, current: 0, previous: stepOf(state, policy) * STEP - units }
  },
}

/**
 * More than twice the epoch milliseconds of any time until the year 6000. With this factor, a safe integer can
 * represent 31 steps.
 */
const STEP = 2 ** 48

/** Returns the length in milliseconds of a block that an operator set, or 0 if the state has no such block. */
export function blockedByHandMs({ current, previous }: CounterState): number {
  return current === 0 ? previous % STEP : 0
}

function unusedAt(nowMs: number): CounterState {
  return { startMs: nowMs, current: 0, previous: 0 }
}

function isBlocked({ current, previous }: CounterState): boolean {
  return current === 0 ? previous % STEP > 0 : previous % STEP === 1
}

/** Returns the number of steps, which is 0 if all blocks have the same length. */
function stepsOf(policy: Policy): number {
  const { length } = (policy.penalty as Penalty).forMs
  return length === 1 ? 0 : length
}

/**
 * Returns the step that the client is on. Caps the stored step, because the list of steps may have become shorter
 * since the state was written.
 */
function stepOf({ previous }: CounterState, policy: Policy): number {
  return Math.min(Math.floor(previous / STEP), stepsOf(policy))
}

function withinOf(policy: Policy): number {
  return (policy.penalty as Penalty).withinMs
}

/**
 * Returns the end of the block, or the time of the last refusal that counts. The client has not been refused since
 * that time.
 */
function quietFromMs(state: CounterState, policy: Policy): number {
  const { startMs, previous } = state
  if (!isBlocked(state)) return startMs + Math.floor((previous % STEP) / 2)
  const { forMs } = policy.penalty as Penalty
  return startMs + (blockedByHandMs(state) || (forMs[Math.max(1, stepOf(state, policy)) - 1] as number))
}

/** Whether the state's block is in force, its refusals still count, or its step has not decreased yet. */
function isCurrent(state: CounterState, policy: Policy, nowMs: number): boolean {
  return nowMs < (isBlocked(state) ? quietFromMs(state, policy) : state.startMs + withinOf(policy))
}

/** Reduces a state that is not current to the client's remaining step. */
function onStepNow(state: CounterState, policy: Policy, nowMs: number): CounterState {
  // If the clock went back, the last refusal may be in the future.
  const fromMs = Math.min(quietFromMs(state, policy), nowMs)
  const withinMs = withinOf(policy)
  const stepsDown = Math.floor((nowMs - fromMs) / withinMs)
  const previous = (stepOf(state, policy) - stepsDown) * STEP
  return { startMs: fromMs + stepsDown * withinMs, current: 0, previous }
}
