import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { ceilingOf, type Policy } from "../ground/policy.ts"
import {
  Counter,
  type CounterStory,
  counterStories,
  KINDS,
  type Kind,
  policyOf,
} from "./testing/counter-story.ts"

interface Admission {
  readonly atMs: number
  readonly units: number
  /** True if the bucket was filled by units that it refused. */
  readonly isFull?: boolean
}

/**
 * A function that checks the counter after each step. `counted` contains the admitted units and the refused units
 * that count nevertheless.
 */
type Tell = (
  counter: Counter,
  nowMs: number,
  log: readonly Admission[],
  counted: readonly Admission[],
) => void

/** Plays a story and calls `tell` after each step, with the admissions so far. */
function play({ policy, startMs, steps }: CounterStory, kind: Kind, tell: Tell): void {
  const counter = new Counter(policy)
  const log: Admission[] = []
  let counted: readonly Admission[] = []
  let nowMs = startMs
  for (const { afterMs, cost } of steps) {
    nowMs += afterMs
    if (counter.take(nowMs, cost)) {
      const admission = { atMs: nowMs, units: cost }
      if (cost > 0) log.push(admission)
      counted = [...counted, admission]
    } else if (policy.countRejected === true && cost <= ceilingOf(policy)) {
      counted = withRejected(kind, policy, counted, nowMs, cost)
    }
    tell(counter, nowMs, log, counted)
  }
}

/** Returns the units that count after `units` were refused. Computes them in a slow but obviously correct way. */
function withRejected(
  kind: Kind,
  policy: Policy,
  counted: readonly Admission[],
  atMs: number,
  units: number,
): readonly Admission[] {
  const ceiling = ceilingOf(policy)
  const sum = (some: readonly Admission[]) => some.reduce((total, one) => total + one.units, 0)
  if (kind === "token" || kind === "leaky") return [...counted, { atMs, units: 0, isFull: true }]
  if (kind === "log") {
    const all = [...counted.filter((one) => atMs - one.atMs <= policy.windowMs), { atMs, units }]
    // Keep the newest units, as many as before or up to the ceiling, whichever is more.
    let room = Math.max(ceiling, sum(all) - units)
    const kept: Admission[] = []
    for (const one of all.reverse()) {
      kept.unshift({ ...one, units: Math.min(one.units, room) })
      room -= Math.min(one.units, room)
    }
    return kept
  }
  const { ms } = subWindows(policy)
  const isPresent = (one: Admission) => Math.floor(one.atMs / ms) === Math.floor(atMs / ms)
  const present =
    kind === "periodic" || kind === "first-hit" || kind === "calendar"
      ? (usedBy(kind, policy, counted, atMs) as number)
      : sum(counted.filter(isPresent))
  return [...counted, { atMs, units: Math.max(0, Math.min(units, ceiling - present)) }]
}

function holds(name: string, kind: Kind, seed: number, tell: Tell, stepsBack = false): void {
  it(name, () => {
    fc.assert(
      fc.property(counterStories(kind, stepsBack, true), (story) => play(story, kind, tell)),
      { seed, numRuns: 100 },
    )
  })
}

/** Returns the length of a sub-window in milliseconds, and how many sub-windows cover the window. */
function subWindows({ windowMs, buckets = 1 }: Policy): { ms: number; count: number } {
  const ms = Math.ceil(windowMs / buckets)
  return { ms, count: Math.ceil(windowMs / ms) }
}

/** The kinds that count time in whole seconds if their amounts are large. */
const IN_SECONDS: readonly Kind[] = ["sliding", "bucketed", "token", "leaky"]

/**
 * Returns the units in use, computed in a slow but obviously correct way, or undefined if time is counted in whole
 * seconds.
 */
function usedBy(kind: Kind, policy: Policy, log: readonly Admission[], nowMs: number): number | undefined {
  const { limit, windowMs } = policy
  if (limit * windowMs > Number.MAX_SAFE_INTEGER && IN_SECONDS.includes(kind)) return undefined
  const { ms, count } = subWindows(policy)
  const indexOf = (atMs: number) => Math.floor(atMs / ms)
  const sum = (counts: (atMs: number) => boolean) =>
    log.reduce((total, { atMs, units }) => (counts(atMs) ? total + units : total), 0)
  switch (kind) {
    case "log":
      return sum((atMs) => nowMs - atMs <= windowMs)
    case "strict":
      return sum((atMs) => indexOf(nowMs) - indexOf(atMs) <= count)
    case "fixed":
      return sum((atMs) => indexOf(nowMs) === indexOf(atMs))
    case "calendar": {
      const periodOf = (ms: number) => {
        const { periods = [] } = policy
        const [first = 0, last = 0] = [periods[0], periods.at(-1)]
        if (ms < first) return Math.floor((ms - first) / windowMs)
        if (ms >= last) return periods.length + Math.floor((ms - last) / windowMs)
        return periods.filter((boundary) => boundary <= ms).length - 1
      }
      return sum((atMs) => periodOf(nowMs) === periodOf(atMs))
    }
    case "first-hit": {
      let used = 0
      let endsAtMs = 0
      for (const { atMs, units } of [...log, { atMs: nowMs, units: 0 }]) {
        if (atMs >= endsAtMs) used = 0
        if (used === 0 && units > 0) endsAtMs = atMs + windowMs
        used += units
      }
      return used
    }
    // One sub-window is as long as the window.
    case "sliding":
    case "bucketed": {
      const oldest = sum((atMs) => indexOf(nowMs) - indexOf(atMs) === count)
      const covered = Math.floor((oldest * (ms - (nowMs % ms))) / ms)
      return sum((atMs) => indexOf(nowMs) - indexOf(atMs) < count) + covered
    }
    case "periodic": {
      let missing = 0
      let window = 0
      for (const { atMs, units } of [...log, { atMs: nowMs, units: 0 }]) {
        const present = Math.floor(atMs / windowMs)
        missing = Math.max(0, missing - (present - window) * limit) + units
        window = present
      }
      return missing
    }
    default: {
      let parts = 0n
      let lastMs = 0
      for (const { atMs, units, isFull } of [...log, { atMs: nowMs, units: 0, isFull: false }]) {
        const left = parts - BigInt(atMs - lastMs) * BigInt(limit)
        parts = (left > 0n ? left : 0n) + BigInt(units) * BigInt(windowMs)
        const full = BigInt(ceilingOf(policy)) * BigInt(windowMs)
        if (isFull === true && parts < full) parts = full
        lastMs = atMs
      }
      return Number((parts + BigInt(windowMs) - 1n) / BigInt(windowMs))
    }
  }
}

/**
 * Returns pairs. A pair consists of the most units that a window may admit and the length of that window in
 * milliseconds.
 */
function boundOf(kind: Kind, { limit, windowMs, burst = limit, buckets = 1 }: Policy): [number, number][] {
  switch (kind) {
    case "strict":
      return [[limit, windowMs]]
    case "log":
      // The window includes both ends.
      return [[limit, windowMs + 1]]
    case "bucketed":
      return [
        [2 * limit, windowMs],
        [limit, Math.floor(windowMs * (1 - 1 / buckets))],
      ]
    default:
      return [[burst + limit, windowMs]]
  }
}

function expectBound(kind: Kind, policy: Policy, log: readonly Admission[]): void {
  for (const [most, lengthMs] of boundOf(kind, policy)) {
    for (const { atMs } of log) {
      const units = log.reduce(
        (sum, one) => (one.atMs <= atMs && one.atMs > atMs - lengthMs ? sum + one.units : sum),
        0,
      )
      if (lengthMs > 0) expect(units).toBeLessThanOrEqual(most)
    }
  }
}

function costsFor(policy: Policy): number[] {
  const ceiling = ceilingOf(policy)
  return [...new Set([1, Math.ceil(ceiling / 3), ceiling])]
}

describe.each(KINDS)("a counter of kind %s", (kind) => {
  holds(
    "reports the same usage as a slow reference implementation",
    kind,
    6_001,
    (counter, nowMs, _log, counted) => {
      const used = usedBy(kind, counter.policy, counted, nowMs)
      if (used !== undefined) expect(counter.used(nowMs)).toBe(used)
    },
  )

  holds("never admits more than its guaranteed maximum", kind, 6_002, (counter, _nowMs, log) =>
    expectBound(kind, counter.policy, log),
  )

  holds(
    "admits a request after exactly the reported wait, and refuses one millisecond earlier",
    kind,
    6_003,
    (counter, nowMs) => {
      for (const cost of costsFor(counter.policy)) {
        const waitMs = counter.waitMs(nowMs, cost)
        expect(Number.isSafeInteger(waitMs) && waitMs >= 0).toBe(true)
        expect(counter.copy().take(nowMs + waitMs, cost)).toBe(true)
        for (const earlierMs of waitMs === 0 ? [] : [1, Math.ceil(waitMs / 2), waitMs]) {
          expect(counter.copy().take(nowMs + waitMs - earlierMs, cost)).toBe(false)
        }
      }
      const over = ceilingOf(counter.policy) + 1
      expect(counter.waitMs(nowMs, over)).toBe(Number.POSITIVE_INFINITY)
      expect(counter.waitMs(nowMs, 0)).toBe(0)
    },
    true,
  )

  holds(
    "admits exactly the remaining units in one burst, and not one more",
    kind,
    6_004,
    (counter, nowMs) => {
      const remaining = counter.remaining(nowMs)
      expect(counter.copy().take(nowMs, remaining)).toBe(true)
      expect(counter.copy().take(nowMs, remaining + 1)).toBe(false)
    },
    true,
  )

  holds(
    "has units in use until the reported reset time, and none from then on",
    kind,
    6_005,
    (counter, nowMs) => {
      const { algorithm, policy } = counter
      const resetMs = algorithm.resetAfterMs(counter.look(nowMs), policy, nowMs)
      expect(counter.copy().used(nowMs + resetMs)).toBe(0)
      if (resetMs > 0) expect(counter.copy().used(nowMs + resetMs - 1)).toBeGreaterThan(0)
    },
    true,
  )

  holds(
    "equals an empty counter at the reported expiry, but not one millisecond earlier",
    kind,
    6_006,
    (counter, nowMs) => {
      const { algorithm, policy } = counter
      const emptyAtMs = algorithm.emptyAtMs(counter.look(nowMs), policy)
      const fromMs = Math.max(emptyAtMs, nowMs)
      expect(counter.copy().look(fromMs)).toEqual(algorithm.at(undefined, policy, fromMs))
      if (emptyAtMs <= nowMs) return
      const earlierMs = emptyAtMs - 1
      expect(counter.copy().look(earlierMs)).not.toEqual(algorithm.at(undefined, policy, earlierMs))
    },
    true,
  )

  holds(
    "frees no units when the clock is set back, and stays the same on a second read",
    kind,
    6_007,
    (counter, nowMs) => {
      const { windowMs } = counter.policy
      const used = counter.used(nowMs)
      for (const backMs of [1, windowMs - 1, windowMs, windowMs + 1, 77 * windowMs]) {
        const later = counter.copy()
        expect(later.used(nowMs - backMs)).toBeGreaterThanOrEqual(used)
        const { state } = later
        expect(later.look(nowMs - backMs)).toEqual(state)
      }
    },
    true,
  )

  holds(
    "extends the longest wait by at most one window when the clock is set back",
    kind,
    6_008,
    (counter, nowMs) => {
      const { limit, windowMs, burst = limit } = counter.policy
      const most = windowMs * (1 + Math.ceil(burst / limit))
      expect(counter.waitMs(nowMs, ceilingOf(counter.policy))).toBeLessThanOrEqual(most)
    },
    true,
  )

  it("never admits more than its maximum in real time when the clock is set back", () => {
    fc.assert(
      fc.property(counterStories(kind, true, true), ({ policy, startMs, steps }) => {
        const counter = new Counter(policy)
        const realLog: Admission[] = []
        let nowMs = startMs
        let realMs = startMs
        for (const { afterMs, cost } of steps) {
          nowMs += afterMs
          realMs += Math.max(0, afterMs)
          if (counter.take(nowMs, cost)) realLog.push({ atMs: realMs, units: cost })
        }
        expectBound(kind, policy, realLog)
      }),
      { seed: 6_009, numRuns: 100 },
    )
  })

  // Skip windows that start with their first request, because such a window would start later without that request.
  it.skipIf(kind === "first-hit")(
    "refunds and charges at most as much as if the request had taken the right units from the start",
    () => {
      const changed = fc.record({
        story: counterStories(kind),
        which: fc.nat(40),
        share: fc.double({ min: 0, max: 1, noNaN: true }),
        charge: fc.boolean(),
        laterMs: fc.nat(3),
      })
      fc.assert(
        fc.property(changed, ({ story, which, share, charge, laterMs }) => {
          const { policy } = story
          // All three counters take the same units, whether or not they fit. One of the counters took `units` fewer
          // from the start.
          const [full, settled, other] = [new Counter(policy), new Counter(policy), new Counter(policy)]
          const chosen = which % story.steps.length
          let nowMs = story.startMs
          let units = 0
          let after = full.look(nowMs)
          story.steps.forEach(({ afterMs, cost }, i) => {
            nowMs += afterMs
            full.charge(nowMs, cost)
            const state = settled.charge(nowMs, cost)
            if (i === chosen) {
              units = charge ? -Math.ceil(share * policy.limit) : Math.ceil(share * cost)
              after = state
            }
            other.charge(nowMs, i === chosen ? cost - units : cost)
          })
          nowMs += laterMs
          settled.refund(nowMs, units, after)
          for (const afterMs of [0, 1, policy.windowMs / 2, policy.windowMs, 2 * policy.windowMs]) {
            const used = settled.copy().used(nowMs + Math.floor(afterMs))
            const [before, never] = [full, other].map((one) => one.copy().used(nowMs + Math.floor(afterMs)))
            if (units >= 0) {
              expect(used).toBeGreaterThanOrEqual(never as number)
              expect(used).toBeLessThanOrEqual(before as number)
            } else {
              expect(used).toBeLessThanOrEqual(never as number)
              expect(used).toBeGreaterThanOrEqual(before as number)
            }
            if (chosen === story.steps.length - 1 && laterMs === 0) expect(used).toBe(never)
          }
        }),
        { seed: 6_010, numRuns: 100 },
      )
    },
  )

  it("counts a later charge as if its units had been taken from the start, if no request came in between", () => {
    const story = fc.record({
      story: counterStories(kind),
      units: fc.nat(30),
      laterMs: fc.nat(120_000),
    })
    fc.assert(
      fc.property(story, ({ story: { policy, startMs }, units, laterMs }) => {
        const [settled, known] = [new Counter(policy), new Counter(policy)]
        const after = settled.charge(startMs, 1)
        known.charge(startMs, 1 + units)
        const nowMs = startMs + (laterMs % (2 * policy.windowMs))
        settled.refund(nowMs, -units, after)
        const used = known.copy().used(nowMs)
        // An expired log entry cannot be charged, but in a bucket the units may still be in use.
        expect(settled.copy().used(nowMs)).toBe(used)
        expect(settled.used(nowMs + policy.windowMs)).toBe(known.used(nowMs + policy.windowMs))
      }),
      { seed: 6_011, numRuns: 100 },
    )
  })

  it("counts a later charge from the time of the request, even if the request took no units", () => {
    fc.assert(
      fc.property(counterStories(kind), fc.integer({ min: 1, max: 9 }), ({ policy, startMs }, units) => {
        const counter = new Counter(policy)
        const after = counter.charge(startMs, 0)
        counter.refund(startMs, -units, after)
        expect(counter.used(startMs)).toBe(units)
      }),
      { seed: 6_012, numRuns: 50 },
    )
  })
})

describe("a sliding window", () => {
  const SLIDING = policyOf({ algorithm: "sliding-window", limit: 10, windowMs: 60_000 })

  /** Returns how many units of these requests are admitted. */
  function admitted(policy: Policy, requests: readonly (readonly [atMs: number, cost: number])[]): number {
    const counter = new Counter(policy)
    return requests.reduce((sum, [atMs, cost]) => (counter.take(atMs, cost) ? sum + cost : sum), 0)
  }

  // The interval lasts from the start of a window to y ms into the next window. The interval contains the P units of
  // the first window. By the formula, the next window then admits at most L - floor(P * (W - y) / W). Both windows
  // together admit at most L + ceil(P * y / W), which is L + 1 while y is at most W / P.
  holds(
    "with P units, plus y ms of the next window, admits at most L + ceil(P * y / W)",
    "sliding",
    6_013,
    ({ policy: { limit, windowMs } }, nowMs, log) => {
      const y = nowMs % windowMs
      const startMs = nowMs - y - windowMs
      const sum = (endMs: number) =>
        log.reduce((total, { atMs, units }) => (atMs >= startMs && atMs < endMs ? total + units : total), 0)
      const extra = (BigInt(sum(startMs + windowMs)) * BigInt(y) + BigInt(windowMs) - 1n) / BigInt(windowMs)
      expect(sum(nowMs + 1)).toBeLessThanOrEqual(limit + Number(extra))
    },
  )

  it("admits L + 1 units in a burst across a boundary, and no more until W / L has passed", () => {
    const ones = (atMs: number) => Array.from({ length: 12 }, () => [atMs, 1] as const)
    const all = [0, 1, 5_999, 6_000, 6_001].map((ms) =>
      admitted(SLIDING, [[59_999, 10], ...ones(60_000 + ms)]),
    )
    expect(all).toEqual([10, 11, 11, 11, 12])
  })

  it("can admit 2L units within 99 % of its length, but a fixed window within two milliseconds", () => {
    const requests = (atMs: number) => [[59_999, 10] as const, [atMs, 10] as const]
    expect(admitted(SLIDING, requests(118_999))).toBe(20)
    expect(admitted({ ...SLIDING, algorithm: "fixed-window" }, requests(60_000))).toBe(20)
  })
})
