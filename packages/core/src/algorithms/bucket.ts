import { ceilingOf, type Policy } from "../ground/policy.ts"
import type { Algorithm, CounterState } from "./algorithm.ts"
import { timeUnitMs, withCountedUpTo } from "./exact-counts.ts"
import { mostInUse, owesTooMuch } from "./most-in-use.ts"

/**
 * The token bucket: holds up to `burst` tokens, of which L come back in each window, evenly. Admits when there are tokens for
 * the cost. Worst case in any window of length W: burst + L.
 *
 * The state counts the units in use, which are the missing tokens here and the water in a leaky bucket. It keeps whole units
 * and the rest of one in parts of the window, so that exactly L parts come back in each unit of time.
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
      // The clock went back: nothing comes back until it has caught up, or a window has passed.
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
    // Nothing comes back under a limit of 0: it is kept for a window, should the limit be raised again.
    if (policy.limit === 0) return state.startMs + policy.windowMs
    return state.startMs + waitMs(state, policy, 0, state.startMs)
  },

  withUnits({ startMs, current, previous }, _policy, units) {
    return { startMs, current: current + units, previous }
  },

  withRejected(state, policy, units) {
    const ceiling = ceilingOf(policy)
    // What is refused fills the bucket. A full one has no rest of a unit above it: what had come back of the last one is lost.
    return withCountedUpTo(ceiling, state.current < ceiling ? { ...state, previous: 0 } : state, units)
  },

  withoutUnits(state, policy, units, after) {
    // The last units to be taken are the last to come back. What they still take up is what is left of that level, less
    // what would be left of it without them; units that are charged make it higher, also where all of it has come back.
    // After a large charge parts are larger ones: all are counted in those of the fullest bucket.
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
 * The leaky bucket: has room for `burst` units, of which L flow out in each window, evenly. Admits when there is room, and
 * says how long to hold an admitted request until its turn: L per window go on, one after the other.
 */
export const leakyBucket: Algorithm = {
  ...tokenBucket,

  delayMs(state, policy, units, nowMs) {
    // The last units to be taken wait until all before them have flowed out.
    const before = { ...state, current: state.current - units }
    return before.current <= 0 && before.previous === 0 ? 0 : waitMs(before, policy, 0, nowMs)
  },
}

interface Scale {
  /** Milliseconds in which L parts come back. */
  readonly unitMs: number
  /** Parts of a unit. */
  readonly whole: number
}

function scaleOf(state: CounterState | undefined, policy: Policy): Scale {
  // One more, for the rest of a unit. A full bucket has the scale of an empty one.
  const most = Math.max(ceilingOf(policy), policy.limit, state?.current ?? 0)
  const unitMs = timeUnitMs(most + 1, policy.windowMs)
  return { unitMs, whole: Math.ceil(policy.windowMs / unitMs) }
}

/** In parts. */
function inUse({ current, previous }: CounterState, { whole }: Scale): number {
  return current * whole + Math.min(previous, whole - 1)
}

/** The parts that come back until then, none before; beyond what fits a safe integer it is too many anyway. */
function flowed({ startMs }: CounterState, { limit }: Policy, { unitMs }: Scale, untilMs: number): number {
  return Math.max(0, Math.floor((untilMs - startMs) / unitMs)) * limit
}

function levelOf(parts: number, startMs: number, { whole }: Scale): CounterState {
  return { startMs, current: Math.floor(parts / whole), previous: parts % whole }
}

/** Milliseconds until no more than so many units are in use, of more; Infinity where nothing comes back. */
function waitMs(state: CounterState, policy: Policy, units: number, nowMs: number): number {
  const scale = scaleOf(state, policy)
  const surplus = inUse(state, scale) - units * scale.whole
  return Math.max(0, state.startMs + Math.ceil(surplus / policy.limit) * scale.unitMs - nowMs)
}
