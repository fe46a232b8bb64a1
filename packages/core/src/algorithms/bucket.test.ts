import { describe, expect, it } from "vitest"
import { algorithmOf } from "./kinds.ts"
import { Counter, expectLedger, policyOf } from "./testing/counter-story.ts"

const NEVER = Number.POSITIVE_INFINITY
/** A policy with a token every six seconds and at most three tokens. */
const POLICY = policyOf({ algorithm: "token-bucket", limit: 10, windowMs: 60_000, burst: 3 })

describe("the token bucket", () => {
  it("spends its burst, and then gains a token every window / limit", () => {
    expectLedger(POLICY, [
      [0, 3, 0, 0],
      [0, 1, 6_000, 0],
      [5_999, 1, 1, 0],
      [6_000, 1, 0, 0],
      [12_000, 2, 6_000, 1],
      [18_000, 2, 0, 0],
      [100_000, 4, NEVER, 3],
      [100_000, 3, 0, 0],
      [100_000, 0, 0, 0],
    ])
  })

  it("contains more tokens than the limit if the burst is larger", () => {
    expectLedger({ ...POLICY, burst: 25 }, [
      [0, 25, 0, 0],
      [0, 20, 120_000, 0],
      [60_000, 11, 6_000, 10],
      [60_000, 10, 0, 0],
    ])
  })

  it("refills once per second under a limit of five million tokens a month", () => {
    const policy = policyOf({ algorithm: "token-bucket", limit: 5_000_000, windowMs: 2_592_000_000 })
    const counter = new Counter(policy)
    expect(counter.take(1_999, 5_000_000)).toBe(true)
    // 1.93 tokens are refilled per second.
    expect(counter.waitMs(1_999, 1)).toBe(1)
    expect(counter.copy().remaining(2_000)).toBe(1)
    expect(counter.copy().remaining(11_999)).toBe(19)
    expect(counter.waitMs(1_999, 5_000_000)).toBe(2_592_000_000 - 999)
  })

  it("counts time in milliseconds, even when full, if limit times window is just below 2^53", () => {
    const limit = Math.floor(Number.MAX_SAFE_INTEGER / 1_000) - 1
    const counter = new Counter(policyOf({ algorithm: "token-bucket", limit, windowMs: 1_000 }))
    expect(counter.take(500, limit)).toBe(true)
    expect(counter.waitMs(500, 1)).toBe(1)
    expect(counter.take(501, 1)).toBe(true)
  })

  it("counts time in seconds if the limit plus a fraction of a token would exceed 2^53", () => {
    const most = Math.floor(Number.MAX_SAFE_INTEGER / 1_000)
    const startMs = (limit: number) => {
      const policy = policyOf({ algorithm: "token-bucket", limit, windowMs: 1_000 })
      return algorithmOf(policy).at(undefined, policy, 1_500).startMs
    }
    expect([startMs(most - 1), startMs(most)]).toEqual([1_500, 1_000])
  })

  it("admits and refills nothing under a limit of 0, and never resets", () => {
    const counter = new Counter(POLICY)
    counter.take(0, 2)
    const none = new Counter({ ...POLICY, limit: 0 })
    none.state = counter.state
    expect([none.take(0, 1), none.take(0, 0), none.waitMs(0, 1)]).toEqual([false, true, NEVER])
    expect(none.used(600_000)).toBe(2)
    expect(none.algorithm.resetAfterMs(none.look(600_000), none.policy, 600_000)).toBe(NEVER)
  })

  it("expires after one window under a limit of 0, or immediately if no units are in use", () => {
    const none = { ...POLICY, limit: 0 }
    const { emptyAtMs } = algorithmOf(none)
    expect(emptyAtMs({ startMs: 5_000, current: 2, previous: 0 }, none)).toBe(65_000)
    expect(emptyAtMs({ startMs: 5_000, current: 0, previous: 7 }, none)).toBe(65_000)
    expect(emptyAtMs({ startMs: 5_000, current: 0, previous: 0 }, none)).toBe(5_000)
    expect(algorithmOf(none).resetAfterMs({ startMs: 5_000, current: 0, previous: 0 }, none, 5_000)).toBe(0)
  })

  it("keeps a partial token below one whole token when the window becomes shorter", () => {
    // A unit has 60,000 parts in a window of a minute, and 1,000 parts in a window of a second.
    const state = { startMs: 5_000, current: 1, previous: 59_999 }
    const second = { ...POLICY, windowMs: 1_000 }
    expect(algorithmOf(second).at(state, second, 5_000)).toEqual({ ...state, previous: 999 })
  })

  it("counts refused units up to the burst, and keeps units above a lowered limit", () => {
    const { withRejected } = algorithmOf(POLICY)
    const refused = (current: number, previous: number) =>
      withRejected({ startMs: 0, current, previous }, POLICY, 2, 0)
    expect(refused(2, 30_000)).toEqual({ startMs: 0, current: 3, previous: 0 })
    expect(refused(1, 1)).toEqual({ startMs: 0, current: 3, previous: 0 })
    expect(refused(3, 30_000)).toEqual({ startMs: 0, current: 3, previous: 30_000 })
    expect(refused(9, 30_000)).toEqual({ startMs: 0, current: 9, previous: 30_000 })
  })

  it("raises its usage to the ceiling in filled(), unless the usage is already higher", () => {
    const { filled } = algorithmOf(POLICY)
    expect(filled?.({ startMs: 5, current: 1, previous: 7 }, POLICY)).toEqual({
      startMs: 5,
      current: 3,
      previous: 7,
    })
    expect(filled?.({ startMs: 5, current: 4, previous: 7 }, POLICY)).toEqual({
      startMs: 5,
      current: 4,
      previous: 7,
    })
  })
})

describe("a bucket whose debt is so large that it counts time in seconds", () => {
  const policy = policyOf({ algorithm: "token-bucket", limit: 1_000_000, windowMs: 86_400_000 })
  const { withUnits, withoutUnits, at, used } = algorithmOf(policy)
  const nowMs = Date.UTC(2024, 0, 1)

  it("charges and refunds the exact number of units, even if its limit and window are odd numbers", () => {
    const odd = { ...policy, limit: 1_000_003, windowMs: 86_400_001 }
    const few = withUnits(at(undefined, odd, nowMs), odd, 10, nowMs)
    const charged = withoutUnits(few, odd, -366_000_007, few, nowMs)
    expect(charged).toEqual({ startMs: nowMs, current: 366_000_017, previous: 0 })
    expect(withoutUnits(charged, odd, 10, few, nowMs)).toEqual({ ...charged, current: 366_000_007 })
    expect(withoutUnits(charged, odd, 366_000_007, charged, nowMs)).toEqual(few)
  })

  it("starts at a whole second after the clock is set back, even if its window includes a fractional second", () => {
    const odd = { ...policy, windowMs: 86_400_999, limit: 1_000_000_000 }
    const far = { startMs: nowMs + 90_000_000, current: 5, previous: 0 }
    expect(at(far, odd, nowMs + 7)).toEqual({ ...far, startMs: nowMs + 86_400_000 })
  })

  it("pays off the debt at its refill rate", () => {
    const few = withUnits(at(undefined, policy, nowMs), policy, 10, nowMs)
    const charged = withoutUnits(few, policy, -366_000_000, few, nowMs)
    const laterMs = nowMs + 365 * policy.windowMs
    const late = at(charged, policy, laterMs)
    expect(used(late, policy, laterMs)).toBe(1_000_010)
    // The state is the same object, because nothing has to be written.
    expect(withoutUnits(late, policy, 10, few, laterMs)).toBe(late)
  })
})
