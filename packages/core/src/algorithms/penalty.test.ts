import fc from "fast-check"
import { describe, expect, it } from "vitest"
import type { Penalty, Policy } from "../ground/policy.ts"
import type { CounterState } from "./algorithm.ts"
import { blockedByHandMs, penalty } from "./penalty.ts"
import { policyOf } from "./testing/counter-story.ts"

/** A policy in which three refusals within 10 s block for a minute. */
const POLICY = policyOf({
  algorithm: "penalty",
  limit: 3,
  windowMs: 60_000,
  penalty: { refusals: 3, withinMs: 10_000, forMs: [60_000] },
})
/** The same policy with blocks that grow: a minute, two minutes, five minutes. */
const GROWING = growing({ refusals: 3, withinMs: 10_000, forMs: [60_000, 120_000, 300_000] })
const START_MS = Date.UTC(2024, 0, 1)

function growing(given: Penalty): Policy {
  return policyOf({ algorithm: "penalty", limit: given.refusals, windowMs: 300_000, penalty: given })
}

/** Returns the state after refusals at these instants, in milliseconds from the start. */
function refusedAt(...instants: readonly number[]): CounterState {
  return refusedUnder(POLICY, ...instants)
}

function refusedUnder(policy: Policy, ...instants: readonly number[]): CounterState {
  let state = penalty.at(undefined, policy, START_MS)
  for (const ms of instants) state = refusedMore(state, policy, ms)
  return state
}

function refusedMore(state: CounterState, policy: Policy, ms: number): CounterState {
  const nowMs = START_MS + ms
  return penalty.withRejected(penalty.at(state, policy, nowMs), policy, 1, nowMs)
}

/** Returns how long a request must wait at this instant. */
function waitMs(state: CounterState, ms: number, policy = POLICY): number {
  const nowMs = START_MS + ms
  const now = penalty.at(state, policy, nowMs)
  const wait = penalty.retryAfterMs(now, policy, 1, nowMs)
  expect(penalty.admits(now, policy, 1, nowMs)).toBe(wait === 0)
  expect(penalty.used(now, policy, nowMs)).toBe(wait === 0 ? 0 : policy.limit)
  expect(penalty.resetAfterMs(now, policy, nowMs)).toBe(wait)
  return wait
}

describe("a penalty", () => {
  it.each([
    { refusals: [], ms: 0, wait: 0 },
    { refusals: [0, 0], ms: 0, wait: 0 },
    { refusals: [0, 4_000, 9_999], ms: 9_999, wait: 60_000 },
    { refusals: [0, 4_000, 9_999], ms: 69_998, wait: 1 },
    { refusals: [0, 4_000, 9_999], ms: 69_999, wait: 0 },
    // When the first refusal is forgotten, all later refusals are forgotten too. The third refusal begins a new
    // count.
    { refusals: [0, 4_000, 10_000], ms: 10_000, wait: 0 },
    { refusals: [0, 4_000, 10_000, 12_000], ms: 12_000, wait: 0 },
    { refusals: [0, 4_000, 10_000, 12_000, 19_999], ms: 19_999, wait: 60_000 },
    // During a block, refusals change nothing. After the block, the count starts again.
    { refusals: [0, 0, 0, 30_000, 59_999], ms: 59_999, wait: 1 },
    { refusals: [0, 0, 0, 30_000, 59_999], ms: 60_000, wait: 0 },
    { refusals: [0, 0, 0, 60_000, 60_000], ms: 60_000, wait: 0 },
    { refusals: [0, 0, 0, 60_000, 60_000, 60_000], ms: 60_000, wait: 60_000 },
  ])("with refusals at $refusals makes a client wait $wait ms at time $ms", ({ refusals, ms, wait }) => {
    expect(waitMs(refusedAt(...refusals), ms)).toBe(wait)
  })

  it("blocks after the first refusal if one refusal is enough", () => {
    const once = { ...POLICY, limit: 1 }
    const state = penalty.withRejected(penalty.at(undefined, once, START_MS), once, 1, START_MS)
    expect(penalty.admits(state, once, 1, START_MS)).toBe(false)
  })

  it("admits a request of cost 0 during a block", () => {
    const state = refusedAt(0, 0, 0)
    expect(penalty.admits(state, POLICY, 0, START_MS)).toBe(true)
    expect(penalty.retryAfterMs(state, POLICY, 0, START_MS)).toBe(0)
  })

  it.each([
    { what: "no refusals", state: refusedAt(), ms: 0 },
    { what: "two refusals", state: refusedAt(1_000, 2_000), ms: 11_000 },
    { what: "a block", state: refusedAt(1_000, 2_000, 3_000), ms: 63_000 },
  ])("with $what expires at exactly $ms ms", ({ state, ms }) => {
    const endMs = START_MS + ms
    expect(penalty.emptyAtMs(state, POLICY)).toBe(endMs)
    expect(penalty.at(state, POLICY, endMs)).toEqual({ startMs: endMs, current: 0, previous: 0 })
    if (ms > 0) expect(penalty.at(state, POLICY, endMs - 1)).toBe(state)
  })

  it.each([
    { what: "a block", state: refusedAt(0, 0, 0), lastsMs: 60_000 },
    { what: "a count", state: refusedAt(0, 0), lastsMs: 10_000 },
  ])(
    "moves $what to the current time when the clock is set back, and keeps its duration",
    ({ state, lastsMs }) => {
      const backMs = START_MS - 3_600_000
      const back = penalty.at(state, POLICY, backMs)
      expect(back).toEqual({ ...state, startMs: backMs })
      expect(penalty.emptyAtMs(back, POLICY)).toBe(backMs + lastsMs)
    },
  )

  it("starts at the current time if no refusal is counted, and otherwise keeps the same state object", () => {
    expect(penalty.at(refusedAt(), POLICY, START_MS + 5)).toEqual({ ...refusedAt(), startMs: START_MS + 5 })
    const state = refusedAt(0)
    expect(penalty.at(state, POLICY, START_MS)).toBe(state)
  })

  it("ignores admitted and refunded units, and writes nothing during a block", () => {
    for (const state of [refusedAt(0), refusedAt(0, 0, 0)]) {
      expect(penalty.withUnits(state, POLICY, 5, START_MS)).toBe(state)
      expect(penalty.withoutUnits(state, POLICY, 1, state, START_MS)).toBe(state)
    }
    const blocked = refusedAt(0, 0, 0)
    expect(penalty.withRejected(blocked, POLICY, 1, START_MS)).toBe(blocked)
  })
})

it("a penalty never blocks under a limit of 0", () => {
  const never = { ...POLICY, limit: 0 }
  const state = penalty.at(undefined, never, START_MS)
  expect(penalty.withRejected(state, never, 1, START_MS)).toBe(state)
})

it("a penalty does not store the client's step if its blocks have a single length", () => {
  expect(refusedAt(0, 500)).toEqual({ startMs: START_MS, current: 2, previous: 0 })
  expect(refusedAt(0, 500, 500)).toEqual({ startMs: START_MS + 500, current: 3, previous: 1 })
  const two = growing({ refusals: 3, withinMs: 10_000, forMs: [60_000, 90_000] })
  expect(refusedUnder(two, 0, 500)).toEqual({ startMs: START_MS, current: 2, previous: 0 })
})

describe("a penalty with blocks that grow", () => {
  const MINUTE = 60_000
  /** Three refusals. The last of these refusals happens at this time. */
  const burst = (ms: number): readonly number[] => [ms, ms, ms]

  it("starts a new count at the first refusal after a block, and not at the block's end", () => {
    const state = refusedUnder(GROWING, ...burst(0), 69_000, 74_000, 78_999)
    expect(waitMs(state, 78_999, GROWING)).toBe(2 * MINUTE)
  })

  it.each([
    { refusals: burst(0), wait: 1 * MINUTE, on: "the first step" },
    { refusals: [...burst(0), ...burst(60_000)], wait: 2 * MINUTE, on: "the second step" },
    { refusals: [...burst(0), ...burst(60_000), ...burst(180_000)], wait: 5 * MINUTE, on: "the last step" },
    {
      refusals: [...burst(0), ...burst(70_000)],
      wait: 1 * MINUTE,
      on: "the first step, after a quiet `within`",
    },
    {
      refusals: [...burst(0), ...burst(60_000), ...burst(180_000), ...burst(500_000)],
      wait: 2 * MINUTE,
      on: "the second step, after two steps down and one step up",
    },
    // A refusal that does not block starts the quiet time again, even if it is the second refusal of its count.
    {
      refusals: [...burst(0), 65_000, 74_000, ...burst(84_000)],
      wait: 1 * MINUTE,
      on: "the first step, `within` after the latest refusal",
    },
    // Refusals during a block do not count.
    { refusals: [...burst(0), 30_000, 59_999, ...burst(70_000)], wait: 1 * MINUTE, on: "the first step" },
  ])(
    "blocks for $wait ms after refusals at $refusals, because the client is on $on",
    ({ refusals, wait }) => {
      const state = refusedUnder(GROWING, ...refusals)
      const ms = refusals.at(-1) as number
      expect(waitMs(state, ms, GROWING)).toBe(wait)
      expect(waitMs(state, ms + wait - 1, GROWING)).toBe(1)
      expect(waitMs(state, ms + wait, GROWING)).toBe(0)
    },
  )

  it("keeps its state exactly until the client is on no step", () => {
    const state = refusedUnder(GROWING, ...burst(0), ...burst(60_000))
    const endMs = START_MS + 180_000 + 2 * 10_000
    for (const atMs of [60_000, 180_000, 189_999, 190_000, 199_999]) {
      const now = penalty.at(state, GROWING, START_MS + atMs)
      expect([atMs, penalty.emptyAtMs(now, GROWING)]).toEqual([atMs, endMs])
      expect(penalty.at(now, GROWING, START_MS + atMs)).toBe(now)
    }
    expect(penalty.at(state, GROWING, endMs)).toEqual({ startMs: endMs, current: 0, previous: 0 })
  })

  it("keeps the step during an operator's block, and counts the quiet time from the block's end", () => {
    const byHand = (state: CounterState, ms: number, units: number) =>
      penalty.withoutUnits(penalty.at(state, GROWING, START_MS + ms), GROWING, -units, state, START_MS + ms)
    const once = refusedUnder(GROWING, ...burst(0))
    for (const ms of [30_000, 65_000]) {
      const blocked = byHand(once, ms, 600_000)
      expect([blockedByHandMs(blocked), waitMs(blocked, ms, GROWING)]).toEqual([600_000, 600_000])
      const endMs = ms + 600_000
      expect(waitMs(burst(endMs + 9_999).reduce(refusedGrowing, blocked), endMs + 9_999, GROWING)).toBe(
        2 * MINUTE,
      )
      expect(waitMs(burst(endMs + 10_000).reduce(refusedGrowing, blocked), endMs + 10_000, GROWING)).toBe(
        MINUTE,
      )
    }
    expect(byHand(once, 30_000, 30_000)).toBe(once)
    expect(blockedByHandMs(once)).toBe(0)
  })

  const refusedGrowing = (state: CounterState, ms: number) => refusedMore(state, GROWING, ms)

  it("applies changed block lengths to current blocks, and forgets steps if only one length is left", () => {
    const state = refusedUnder(GROWING, ...burst(0), ...burst(60_000), ...burst(180_000))
    const two = growing({ refusals: 3, withinMs: 10_000, forMs: [60_000, 90_000] })
    expect(waitMs(state, 180_000, two)).toBe(90_000)
    expect(penalty.emptyAtMs(state, two)).toBe(START_MS + 270_000 + 2 * 10_000)
    const one = growing({ refusals: 3, withinMs: 10_000, forMs: [70_000] })
    expect(waitMs(state, 180_000, one)).toBe(70_000)
    expect(penalty.emptyAtMs(state, one)).toBe(START_MS + 250_000)
    const quiet = penalty.at(state, GROWING, START_MS + 480_000)
    expect(penalty.at(quiet, one, START_MS + 480_001)).toEqual({
      startMs: START_MS + 480_001,
      current: 0,
      previous: 0,
    })
  })

  it("does not move a client to a higher step when the clock is set back", () => {
    const state = refusedUnder(GROWING, ...burst(0), 65_000, 74_000)
    for (const ms of [70_000, 60_000, -3_600_000]) {
      const nowMs = START_MS + ms
      const back = penalty.at(state, GROWING, nowMs)
      expect(back.startMs).toBeLessThanOrEqual(nowMs)
      expect(penalty.emptyAtMs(back, GROWING)).toBeLessThanOrEqual(nowMs + 20_000)
      expect(waitMs(burst(ms).reduce(refusedGrowing, back), ms, GROWING)).toBe(2 * MINUTE)
    }
    // Under a shorter `within`, both refusals are forgotten before the clock reaches the time of the last refusal.
    const shorter = growing({ refusals: 3, withinMs: 5_000, forMs: [60_000, 120_000, 300_000] })
    expect(penalty.at(state, shorter, START_MS + 71_000).startMs).toBe(START_MS + 71_000)
    const again = burst(71_000).reduce((before, ms) => refusedMore(before, shorter, ms), state)
    expect(waitMs(again, 71_000, shorter)).toBe(2 * MINUTE)
  })

  it("matches a model that moves the client's step one event at a time", () => {
    const event = fc.record({
      afterMs: fc.constantFrom(0, 1, 3, 9, 10, 11, 19, 20, 30, 50, 100, 300),
      isRefused: fc.boolean(),
    })
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 3 }),
        fc.array(fc.constantFrom(1, 10, 25, 100), { minLength: 2, maxLength: 4 }),
        fc.array(event, { maxLength: 60 }),
        (refusals, forMs, events) => {
          const policy = growing({ refusals, withinMs: 10, forMs })
          const client = new SteppedClient(refusals, 10, forMs)
          let state = penalty.at(undefined, policy, START_MS)
          let nowMs = START_MS
          for (const { afterMs, isRefused } of events) {
            nowMs += afterMs
            client.moveTo(nowMs)
            state = penalty.at(state, policy, nowMs)
            if (isRefused) {
              client.refuse(nowMs)
              state = penalty.withRejected(state, policy, 1, nowMs)
            }
            expect(penalty.retryAfterMs(state, policy, 1, nowMs)).toBe(Math.max(0, client.releaseMs - nowMs))
          }
        },
      ),
    )
  })
})

/** A client under a penalty with steps, modeled as the documents describe it. */
class SteppedClient {
  releaseMs = 0
  readonly #refusals: number
  readonly #withinMs: number
  readonly #forMs: readonly number[]
  #step = 0
  #quietFromMs = 0
  #counted: number[] = []

  constructor(refusals: number, withinMs: number, forMs: readonly number[]) {
    this.#refusals = refusals
    this.#withinMs = withinMs
    this.#forMs = forMs
  }

  moveTo(nowMs: number): void {
    for (; nowMs - this.#quietFromMs >= this.#withinMs && this.#step > 0; this.#step--)
      this.#quietFromMs += this.#withinMs
  }

  refuse(nowMs: number): void {
    if (nowMs < this.releaseMs) return
    const [firstMs = nowMs] = this.#counted
    if (nowMs - firstMs >= this.#withinMs) this.#counted = []
    this.#counted.push(nowMs)
    this.#quietFromMs = nowMs
    if (this.#counted.length < this.#refusals) return
    this.#counted = []
    this.#step = Math.min(this.#step + 1, this.#forMs.length)
    this.releaseMs = nowMs + (this.#forMs[this.#step - 1] as number)
    this.#quietFromMs = this.releaseMs
  }
}
