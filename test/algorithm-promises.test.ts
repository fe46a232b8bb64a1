import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { type Trace, type TraceOptions, traces } from "../packages/contracts/src/traces.ts"
import type { CounterState } from "../packages/core/src/algorithms/algorithm.ts"
import { algorithmOf } from "../packages/core/src/algorithms/kinds.ts"
import type { Policy } from "../packages/core/src/ground/policy.ts"

/** Units that were admitted at an instant. These form the exact log that the promises are checked against. */
interface Admission {
  readonly atMs: number
  readonly units: number
}

/** The state of a counter at one point of a trace. */
interface Moment {
  readonly policy: Policy
  readonly state: CounterState
  readonly nowMs: number
  /** The time that has really passed, regardless of the clock. */
  readonly elapsedMs: number
}

interface Story {
  readonly policy: Policy
  readonly log: readonly Admission[]
  /** The log by the time that has really passed. */
  readonly realLog: readonly Admission[]
  readonly moments: readonly Moment[]
}

/** Plays a trace as a store does: it keeps each state that it has read and counts the admitted units. */
function play({ policy, startMs, steps }: Trace): Story {
  const algorithm = algorithmOf(policy)
  const log: Admission[] = []
  const realLog: Admission[] = []
  const moments: Moment[] = []
  let state: CounterState | undefined
  let nowMs = startMs
  let elapsedMs = 0
  for (const { afterMs, cost } of steps) {
    nowMs += afterMs
    elapsedMs += Math.max(0, afterMs)
    state = algorithm.at(state, policy, nowMs)
    if (algorithm.admits(state, policy, cost, nowMs)) {
      state = algorithm.withUnits(state, policy, cost, nowMs)
      log.push({ atMs: nowMs, units: cost })
      realLog.push({ atMs: elapsedMs, units: cost })
    } else if (policy.countRejected === true && cost <= policy.limit) {
      state = algorithm.withRejected(state, policy, cost, nowMs)
    }
    moments.push({ policy, state, nowMs, elapsedMs })
  }
  return { policy, log, realLog, moments }
}

/** Returns the units of a log between two instants, both included. */
function unitsBetween(log: readonly Admission[], fromMs: number, toMs: number): number {
  return log.reduce((sum, { atMs, units }) => (atMs >= fromMs && atMs <= toMs ? sum + units : sum), 0)
}

function stateAt({ policy, state }: Moment, atMs: number): CounterState {
  return algorithmOf(policy).at(state, policy, atMs)
}

function remainingAt(moment: Moment, atMs: number): number {
  const { policy } = moment
  return Math.max(0, policy.limit - algorithmOf(policy).used(stateAt(moment, atMs), policy, atMs))
}

function admitsAt(moment: Moment, cost: number, atMs: number): boolean {
  const { policy } = moment
  return algorithmOf(policy).admits(stateAt(moment, atMs), policy, cost, atMs)
}

function retryAfterMs({ policy, state, nowMs }: Moment, cost: number): number {
  return algorithmOf(policy).retryAfterMs(state, policy, cost, nowMs)
}

/**
 * Registers a test that the promise holds for every trace. A failure prints the shortest failing trace and its seed.
 */
function holds(name: string, seed: number, options: TraceOptions, promise: (story: Story) => void): void {
  it(name, () => {
    fc.assert(
      fc.property(traces(options), (trace) => {
        promise(play(trace))
      }),
      { seed, numRuns: 200 },
    )
  })
}

/** Registers a test that the promise holds at every step of every trace. */
function holdsAlways(name: string, seed: number, promise: (moment: Moment) => void): void {
  holds(name, seed, { stepsBack: true, countsRejected: true }, ({ moments }) => moments.forEach(promise))
}

describe("the bound", () => {
  holds("no window of the policy's length admits more than twice the limit", 5_001, {}, ({ policy, log }) => {
    for (const { atMs } of log) {
      expect(unitsBetween(log, atMs - policy.windowMs + 1, atMs)).toBeLessThanOrEqual(2 * policy.limit)
    }
  })

  holds("no window aligned to the epoch admits more than the limit", 5_002, {}, ({ policy, log }) => {
    if (policy.align === "first-hit") return
    for (const { atMs } of log) {
      const startMs = atMs - (atMs % policy.windowMs)
      expect(unitsBetween(log, startMs, startMs + policy.windowMs - 1)).toBeLessThanOrEqual(policy.limit)
    }
  })

  holds("no window that starts with its first request admits more than the limit", 5_003, {}, (story) => {
    const { policy, log } = story
    if (policy.align === "epoch") return
    let endsAt = 0
    for (const { atMs, units } of log) {
      if (units === 0 || atMs < endsAt) continue
      endsAt = atMs + policy.windowMs
      expect(unitsBetween(log, atMs, endsAt - 1)).toBeLessThanOrEqual(policy.limit)
    }
  })

  // The interval is from the start of a window to y ms into the next. It contains the P units of the first window. By
  // the formula, the next one then admits at most L - floor(P * (W - y) / W). Together that is L + ceil(P * y / W).
  // While y is at most W / P, that is L + 1.
  const SLIDING: TraceOptions = { algorithms: ["sliding-window"] }
  holds("a window and y ms of the next one admit at most L + ceil(P * y / W)", 5_004, SLIDING, (story) => {
    const { policy, log } = story
    const { limit, windowMs } = policy
    for (const { atMs } of log) {
      const y = atMs % windowMs
      const boundary = atMs - y
      const previous = unitsBetween(log, boundary - windowMs, boundary - 1)
      const extra = Number((BigInt(previous) * BigInt(y) + BigInt(windowMs) - 1n) / BigInt(windowMs))
      expect(unitsBetween(log, boundary - windowMs, atMs)).toBeLessThanOrEqual(limit + extra)
    }
  })

  it("a burst across a boundary reaches L + 1, and not more until W / L has passed", () => {
    const policy = slidingOf(10, 60_000)
    const admitted = [0, 1, 5_999, 6_000, 6_001].map((afterMs) => {
      const { log } = play({ policy, startMs: 59_999, steps: [ten(0), ...ones(afterMs + 1, 12)] })
      return unitsBetween(log, 0, 120_000)
    })
    expect(admitted).toEqual([10, 11, 11, 11, 12])
  })

  it("the sliding window can reach its worst case: 2L, spread over 99% of a window", () => {
    const { log } = play({ policy: slidingOf(10, 60_000), startMs: 59_999, steps: [ten(0), ten(59_000)] })
    expect(unitsBetween(log, 59_999, 119_998)).toBe(20)
  })

  it("the fixed window can reach its worst case: 2L within two milliseconds", () => {
    const policy: Policy = { ...slidingOf(10, 60_000), algorithm: "fixed-window" }
    const { log } = play({ policy, startMs: 59_999, steps: [ten(0), ten(1)] })
    expect(unitsBetween(log, 59_999, 60_000)).toBe(20)
  })

  function slidingOf(limit: number, windowMs: number): Policy {
    return { name: "p", counter: "p", algorithm: "sliding-window", limit, windowMs, align: "epoch" }
  }

  function ten(afterMs: number): { afterMs: number; cost: number } {
    return { afterMs, cost: 10 }
  }

  function ones(afterMs: number, count: number): { afterMs: number; cost: number }[] {
    return Array.from({ length: count }, (_, i) => ({ afterMs: i === 0 ? afterMs : 0, cost: 1 }))
  }
})

describe("the values reported to a client", () => {
  holdsAlways(
    "a client that waits for retryAfterMs is admitted at that millisecond, and refused one earlier",
    5_011,
    (moment) => {
      for (const cost of costsFor(moment.policy)) {
        const waitMs = retryAfterMs(moment, cost)
        expect(Number.isSafeInteger(waitMs) && waitMs >= 0).toBe(true)
        expect(admitsAt(moment, cost, moment.nowMs + waitMs)).toBe(true)
        if (waitMs === 0) continue
        for (const earlier of [1, 2, Math.ceil(waitMs / 2), Math.ceil(waitMs / 3), waitMs]) {
          expect(admitsAt(moment, cost, moment.nowMs + waitMs - Math.min(earlier, waitMs))).toBe(false)
        }
      }
    },
  )

  holdsAlways("the wait is infinite only for a cost above the limit", 5_012, (moment) => {
    expect(retryAfterMs(moment, moment.policy.limit + 1)).toBe(Number.POSITIVE_INFINITY)
    expect(admitsAt(moment, moment.policy.limit + 1, moment.nowMs)).toBe(false)
  })

  holdsAlways("the remaining units are admitted at once, and one more is not", 5_013, (moment) => {
    const remaining = remainingAt(moment, moment.nowMs)
    expect(Number.isSafeInteger(remaining) && remaining >= 0 && remaining <= moment.policy.limit).toBe(true)
    expect(admitsAt(moment, remaining, moment.nowMs)).toBe(true)
    expect(admitsAt(moment, remaining + 1, moment.nowMs)).toBe(false)
  })

  holdsAlways("taking n units leaves n fewer", 5_014, (moment) => {
    const { policy, state, nowMs } = moment
    const remaining = remainingAt(moment, nowMs)
    const units = Math.ceil(remaining / 2)
    const next = algorithmOf(policy).withUnits(state, policy, units, nowMs)
    expect(Math.max(0, policy.limit - algorithmOf(policy).used(next, policy, nowMs))).toBe(remaining - units)
  })

  holdsAlways(
    "the next unit is available at the reported millisecond, and not one earlier",
    5_015,
    (moment) => {
      const remaining = remainingAt(moment, moment.nowMs)
      if (remaining === moment.policy.limit) return
      const waitMs = retryAfterMs(moment, remaining + 1)
      expect(remainingAt(moment, moment.nowMs + waitMs)).toBeGreaterThan(remaining)
      expect(remainingAt(moment, moment.nowMs + waitMs - 1)).toBe(remaining)
    },
  )

  holdsAlways(
    "the whole limit is available at the reported millisecond, and not one earlier",
    5_016,
    (moment) => {
      const { policy, state, nowMs } = moment
      const resetMs = algorithmOf(policy).resetAfterMs(state, policy, nowMs)
      expect(remainingAt(moment, nowMs + resetMs)).toBe(policy.limit)
      if (resetMs > 0) expect(remainingAt(moment, nowMs + resetMs - 1)).toBeLessThan(policy.limit)
    },
  )

  holdsAlways(
    "a counter equals an empty one from the reported millisecond, and not one earlier",
    5_017,
    (moment) => {
      const { policy, state } = moment
      const algorithm = algorithmOf(policy)
      const emptyAtMs = algorithm.emptyAtMs(state, policy)
      const fromMs = Math.max(emptyAtMs, moment.nowMs)
      expect(stateAt(moment, fromMs)).toEqual(algorithm.at(undefined, policy, fromMs))
      if (emptyAtMs <= moment.nowMs) return
      expect(stateAt(moment, emptyAtMs - 1)).not.toEqual(algorithm.at(undefined, policy, emptyAtMs - 1))
    },
  )

  holdsAlways("a cost of 0 is always admitted at once", 5_018, (moment) => {
    const cut = { ...moment, policy: { ...moment.policy, limit: 1 } }
    expect(admitsAt(cut, 0, moment.nowMs)).toBe(true)
    expect(retryAfterMs(cut, 0)).toBe(0)
  })

  holdsAlways("giving units back at once restores the previous state", 5_019, (moment) => {
    const { policy, state, nowMs } = moment
    const algorithm = algorithmOf(policy)
    const taken = algorithm.withUnits(state, policy, 3, nowMs)
    expect(algorithm.withoutUnits(taken, policy, 3, taken, nowMs)).toEqual(state)
  })

  function costsFor({ limit }: Policy): number[] {
    return [...new Set([1, Math.ceil(limit / 3), limit])]
  }
})

describe("a clock that steps back", () => {
  const STEPS_BACK: TraceOptions = { stepsBack: true }

  holdsAlways("never makes room, so a request that was refused before is refused after", 5_021, (moment) => {
    const { windowMs } = moment.policy
    const remaining = remainingAt(moment, moment.nowMs)
    for (const ms of [1, windowMs - 1, windowMs, windowMs + 1, 2 * windowMs, 77 * windowMs]) {
      expect(remainingAt(moment, moment.nowMs - ms)).toBeLessThanOrEqual(remaining)
    }
  })

  holdsAlways("makes no request wait longer than two windows", 5_022, (moment) => {
    expect(retryAfterMs(moment, moment.policy.limit)).toBeLessThanOrEqual(2 * moment.policy.windowMs)
  })

  holds("admits no more than twice the limit in any window of real time", 5_023, STEPS_BACK, (story) => {
    const { policy, realLog } = story
    for (const { atMs } of realLog) {
      expect(unitsBetween(realLog, atMs - policy.windowMs + 1, atMs)).toBeLessThanOrEqual(2 * policy.limit)
    }
  })

  holdsAlways("brings a state back once, and evaluating it again changes nothing", 5_024, (moment) => {
    for (const atMs of [moment.nowMs, moment.nowMs - 3 * moment.policy.windowMs]) {
      const state = stateAt(moment, atMs)
      expect(algorithmOf(moment.policy).at(state, moment.policy, atMs)).toEqual(state)
    }
  })
})
