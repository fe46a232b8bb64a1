import { ceilingOf, type Policy } from "../ground/policy.ts"
import type { Algorithm, CounterState } from "./algorithm.ts"
import { timeUnitMs, withCountedUpTo } from "./exact-counts.ts"
import { mostInUse, owesTooMuch } from "./most-in-use.ts"

/**
 * The token bucket contains up to `burst` tokens, and is refilled evenly with L tokens per window. The bucket admits
 * a request if it contains enough tokens for the cost. Worst case in any window of length W: burst + L.
 *
 * The state counts the units in use, which are the missing tokens here and the water in a leaky bucket. The state
 * stores whole units, and a fraction of a unit as parts of the window. So exactly L parts are refilled in each unit
 * of time.
 */
export const tokenBucket: Algorithm = {
  at(stored, policy, nowMs) {
    const state =
      stored !== undefined && owesTooMuch(stored.current, policy)
        ? { ...stored, current: ceilingOf(policy), previous: 0 }
        : stored
    const scale = scaleOf(state, policy)
    const { unitMs } = scale
    const startMs = nowMs - (nowMs % unitMs)
    if (state === undefined) return { startMs, current: 0, previous: 0 }
    if (state.startMs > startMs) {
      // The clock went back. Tokens are refilled only when the clock has caught up, or after a window.
      const farthestMs = startMs + policy.windowMs - (policy.windowMs % unitMs)
      return { ...state, startMs: Math.min(state.startMs, farthestMs) }
    }
    const parts = Math.max(0, inUse(state, scale) - flowed(state, policy, scale, startMs))
    return levelOf(parts, startMs, scale)
  },

  admits(state, policy, cost) {
    if (cost === 0) return true
    const { current, previous } = state
    return current + cost + (previous > 0 ? 1 : 0) <= ceilingOf(policy)
  },

  used({ current, previous }) {
    return current + (previous > 0 ? 1 : 0)
  },

  retryAfterMs(state, policy, cost, nowMs) {
    if (this.admits(state, policy, cost, nowMs)) return 0
    const ceiling = ceilingOf(policy)
    if (cost > ceiling) return Number.POSITIVE_INFINITY
    return waitMs(state, policy, ceiling - cost, nowMs)
  },

  resetAfterMs(state, policy, nowMs) {
    return state.current === 0 && state.previous === 0 ? 0 : waitMs(state, policy, 0, nowMs)
  },

  endsByRule: true,

  emptyAtMs(state, policy) {
    if (state.current === 0 && state.previous === 0) return state.startMs
    // With a limit of 0, tokens are never refilled. Keep the state for a window in case the limit is raised again.
    if (policy.limit === 0) return state.startMs + policy.windowMs
    return state.startMs + waitMs(state, policy, 0, state.startMs)
  },

  withUnits({ startMs, current, previous }, _policy, units) {
    return { startMs, current: current + units, previous }
  },

  withRejected(state, policy, units) {
    const ceiling = ceilingOf(policy)
    // Refused units fill the bucket. A full bucket cannot contain a fraction of a unit, so the refilled fraction of
    // its last unit is lost.
    return withCountedUpTo(ceiling, state.current < ceiling ? { ...state, previous: 0 } : state, units)
  },

  filled(state, policy) {
    return { ...state, current: Math.max(state.current, ceilingOf(policy)) }
  },

  withoutUnits(state, policy, units, after) {
    // The units that were taken last are refilled last. Compute how much of the level `after` is still in use with
    // these units and without them. The difference is the part that these units still occupy. A charge (negative
    // units) raises the level, even if the whole level has been refilled. A large charge requires larger parts of a
    // unit, so use the scale of the fullest bucket.
    const current = Math.max(state.current, after.current) + Math.max(0, -units)
    const scale = scaleOf({ ...state, current }, policy)
    const left = inUse(after, scale) - flowed(after, policy, scale, state.startMs)
    const parts = Math.max(0, left) - Math.max(0, left - units * scale.whole)
    if (parts === 0) return state
    const level = levelOf(Math.max(0, inUse(state, scale) - parts), state.startMs, scale)
    return owesTooMuch(level.current, policy) ? { ...level, current: mostInUse(policy), previous: 0 } : level
  },
}

/**
 * The leaky bucket has room for `burst` units, and L units per window leak out evenly. The bucket admits a request if
 * there is room for the cost. `delayMs` returns how long an admitted request must wait, so that L units per window
 * proceed, one after another.
 */
export const leakyBucket: Algorithm = {
  ...tokenBucket,

  delayMs(state, policy, units, nowMs) {
    // The units that were taken last wait until all earlier units have leaked out.
    const before = { ...state, current: state.current - units }
    return before.current <= 0 && before.previous === 0 ? 0 : waitMs(before, policy, 0, nowMs)
  },
}

interface Scale {
  /** Milliseconds in which L parts are refilled. */
  readonly unitMs: number
  /** Number of parts in a unit. */
  readonly whole: number
}

function scaleOf(state: CounterState | undefined, policy: Policy): Scale {
  // A full bucket must have the same scale as an empty bucket. Add 1 for the fraction of a unit.
  const most = Math.max(ceilingOf(policy), policy.limit, state?.current ?? 0)
  const unitMs = timeUnitMs(most + 1, policy.windowMs)
  return { unitMs, whole: Math.ceil(policy.windowMs / unitMs) }
}

/** Returns the level in parts. */
function inUse({ current, previous }: CounterState, { whole }: Scale): number {
  return current * whole + Math.min(previous, whole - 1)
}

/**
 * Returns the parts that are refilled until `untilMs`, or 0 if `untilMs` is before the start of the state. A result
 * above the safe integers is inexact, but it exceeds any level anyway.
 */
function flowed({ startMs }: CounterState, { limit }: Policy, { unitMs }: Scale, untilMs: number): number {
  return Math.max(0, Math.floor((untilMs - startMs) / unitMs)) * limit
}

function levelOf(parts: number, startMs: number, { whole }: Scale): CounterState {
  return { startMs, current: Math.floor(parts / whole), previous: parts % whole }
}

/**
 * Returns the milliseconds until at most `units` are in use, or Infinity if the limit is 0. Call it only if more
 * units are in use now.
 */
function waitMs(state: CounterState, policy: Policy, units: number, nowMs: number): number {
  const scale = scaleOf(state, policy)
  const surplus = inUse(state, scale) - units * scale.whole
  return Math.max(0, state.startMs + Math.ceil(surplus / policy.limit) * scale.unitMs - nowMs)
}
