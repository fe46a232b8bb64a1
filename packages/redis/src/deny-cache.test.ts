import type { Check, CounterState, Policy } from "@sluice/core/stores"
import { describe, expect, it } from "vitest"
import { DenyCache } from "./deny-cache.ts"

const SLIDING: Policy = {
  name: "login",
  counter: "counter0",
  algorithm: "sliding-window",
  limit: 10,
  windowMs: 60_000,
  align: "epoch",
}
const FIXED: Policy = { ...SLIDING, algorithm: "fixed-window" }
const START_MS = 28_401_120 * 60_000
const LONGEST_MS = 10_000
/** An instant six seconds before the window's end, by the server's clock and by this process's clock. */
const SERVER_MS = START_MS + 54_000
const SENT_MS = 777.25

function check(cost = 1, more: Partial<Check> = {}): Check {
  return { policy: FIXED, partition: "alice", cost, shadow: false, ...more }
}

/** Returns a check of one unit for a client. */
function of(partition: string, counter: string = FIXED.counter): Check {
  return check(1, { partition, policy: { ...FIXED, counter } })
}

function full(more: Partial<CounterState> = {}): CounterState {
  return { startMs: START_MS, current: 10, previous: 0, ...more }
}

type Learned = readonly [check: Check, state: CounterState | undefined, taken?: number]

/** Passes a reply of Redis to the cache. Only the checks of a grant may have taken units. */
function learn(denied: DenyCache, learned: readonly Learned[], atMs = 0, granted = false): void {
  const checks = learned.map(([one]) => one)
  const counted = learned.map(([, state, taken = 0]) => state && { state, taken })
  const between = { sentAtMs: SENT_MS + atMs, answeredAtMs: SENT_MS + atMs }
  denied.learn(checks, { nowMs: SERVER_MS + atMs, granted, checks: counted }, between)
}

/** Creates a cache that has learned of a refusal: `refused` was refused because the whole limit was taken. */
function refusing(refused: Check = check(), longestMs = LONGEST_MS, state = full()): DenyCache {
  const denied = new DenyCache(longestMs)
  learn(denied, [[refused, state]])
  return denied
}

function answerTo(denied: DenyCache, asked: Check, afterMs = 0): boolean {
  return denied.answer([asked], SENT_MS + afterMs) !== undefined
}

/** Returns the current count of each check in the reply; undefined if Redis must decide. */
function countsIn(denied: DenyCache, checks: readonly Check[], afterMs = 0) {
  return denied.answer(checks, SENT_MS + afterMs)?.checks.map((counted) => counted?.state.current)
}

describe("DenyCache", () => {
  it("returns the state of the refusal at the current server time", () => {
    expect(refusing().answer([check()], SENT_MS + 1_000.9)).toEqual({
      nowMs: SERVER_MS + 1_000,
      granted: false,
      checks: [{ state: { startMs: START_MS, current: 10, previous: 0 }, taken: 0, ageMs: 1_001 }],
      isRemembered: true,
    })
  })

  it("measures the expiry of a refusal from its send time, and the server's time from its arrival", () => {
    const denied = new DenyCache(LONGEST_MS)
    const answer = { nowMs: SERVER_MS, granted: false, checks: [{ state: full(), taken: 0 }] }
    denied.learn([check()], answer, { sentAtMs: SENT_MS, answeredAtMs: SENT_MS + 40 })
    const toldAt = (afterMs: number) => denied.answer([check()], SENT_MS + afterMs)?.nowMs
    expect([20, 40, 41, 5_998].map(toldAt)).toEqual([0, 0, 1, 5_958].map((ms) => SERVER_MS + ms))
    expect(toldAt(5_999)).toBeUndefined()
  })

  it("moves the state to the server's current window", () => {
    const denied = refusing(check(10, { policy: SLIDING }), LONGEST_MS, full({ current: 9 }))
    expect(denied.answer([check(10, { policy: SLIDING })], SENT_MS + 7_000)).toEqual({
      nowMs: SERVER_MS + 7_000,
      granted: false,
      checks: [{ state: { startMs: START_MS + 60_000, current: 0, previous: 9 }, taken: 0, ageMs: 7_000 }],
      isRemembered: true,
    })
  })

  it("reports the state of every check of a refused request", () => {
    const denied = new DenyCache(LONGEST_MS)
    const other = of("alice", "counter1")
    const shadow = check(1, { policy: { ...FIXED, counter: "counter2" }, shadow: true })
    learn(denied, [
      [other, full({ current: 3 })],
      [check(), full()],
      [shadow, full({ current: 7 })],
    ])
    expect(countsIn(denied, [other, check(), shadow])).toEqual([3, 10, 7])
    // A subset of the checks, in another order, has the same counts.
    expect(countsIn(denied, [check(), other])).toEqual([10, 3])
  })

  it("leaves a request to Redis if one check's counter is unknown, even if another check refuses", () => {
    const denied = refusing()
    expect(countsIn(denied, [check(), of("alice", "counter1")])).toBeUndefined()
    learn(denied, [
      [check(), full()],
      [of("alice", "counter1"), undefined],
    ])
    expect(countsIn(denied, [check(), of("alice", "counter1")])).toBeUndefined()
    expect(countsIn(denied, [check()])).toEqual([10])
  })

  it("leaves a request to Redis if it would fit, even if requests with higher costs were refused", () => {
    const denied = refusing(check(3), LONGEST_MS, full({ current: 8 }))
    const row = (cost: number, more: Partial<Policy> = {}) =>
      answerTo(denied, check(cost, { policy: { ...FIXED, ...more } }))
    expect([row(0), row(1), row(2), row(3), row(4)]).toEqual([false, false, false, true, true])
    expect([row(3, { limit: 11 }), row(3, { extra: 1 }), row(2, { limit: 9 })]).toEqual([false, false, true])
  })

  it("is updated by the grants that this process receives", () => {
    // Another process takes one unit before the grant.
    const denied = refusing(check(4), LONGEST_MS, full({ current: 7 }))
    learn(denied, [[check(2), full(), 2]], 500, true)
    expect(denied.answer([check(3)], SENT_MS + 600)).toMatchObject({
      nowMs: SERVER_MS + 600,
      checks: [{ state: { current: 10 } }],
    })
    expect(answerTo(denied, check(1), 600)).toBe(true)
  })

  it("ignores grants of unknown counters and grants that took nothing", () => {
    const denied = new DenyCache(LONGEST_MS)
    learn(denied, [[check(), full(), 1]], 0, true)
    expect(answerTo(denied, check())).toBe(false)
    learn(denied, [[check(), full()]])
    // For a log, the reply contains the time of the call, which the cache must not store.
    learn(denied, [[check(0), full({ startMs: SERVER_MS }), 0]], 500, true)
    expect(denied.answer([check()], SENT_MS + 500)?.checks[0]?.state.startMs).toBe(START_MS)
  })

  it("adds a grant to the known parts of a strict window, because the reply to a grant omits the parts", () => {
    const policy: Policy = { ...FIXED, algorithm: "sliding-window-strict", buckets: 6 }
    const startMs = SERVER_MS - (SERVER_MS % 10_000)
    const state = { startMs, current: 1, previous: 7, parts: "1052" }
    const asked = (cost: number) => check(cost, { policy })
    const denied = refusing(asked(3), LONGEST_MS, state)
    learn(denied, [[asked(1), { ...state, current: 2, parts: "1001" }, 1]], 500, true)
    expect(denied.answer([asked(3)], SENT_MS + 500)?.checks).toEqual([
      { state: { ...state, current: 2 }, taken: 0, ageMs: 0 },
    ])
  })

  it.each<[string, Partial<CounterState>]>([
    ["the current sub-window", { current: 3 }],
    ["an earlier sub-window", { previous: 8 }],
    [
      "a later sub-window, according to another clock",
      { startMs: SERVER_MS - (SERVER_MS % 10_000) + 10_000 },
    ],
  ])("leaves a strict window to Redis after a grant if another process took units from %s", (_, changed) => {
    const policy: Policy = { ...FIXED, algorithm: "sliding-window-strict", buckets: 6 }
    const startMs = SERVER_MS - (SERVER_MS % 10_000)
    const state = { startMs, current: 1, previous: 7, parts: "1052" }
    const asked = (cost: number) => check(cost, { policy })
    const denied = refusing(asked(3), LONGEST_MS, state)
    learn(denied, [[asked(1), { ...state, current: 2, parts: "1001", ...changed }, 1]], 500, true)
    expect(answerTo(denied, asked(3), 500)).toBe(false)
  })

  it("leaves a bucket to Redis if its refill has changed, but not a window whose limit has changed", () => {
    const policy: Policy = { ...FIXED, algorithm: "token-bucket", burst: 10 }
    const denied = refusing(check(1, { policy }), LONGEST_MS, {
      startMs: SERVER_MS,
      current: 10,
      previous: 0,
    })
    expect(answerTo(denied, check(1, { policy: { ...policy } }), 5_000)).toBe(true)
    expect(answerTo(denied, check(1, { policy: { ...policy, limit: 9 } }), 5_000)).toBe(false)
    // Units that elastic throttling admits above the limit do not change the units in use.
    expect(answerTo(denied, check(2, { policy: { ...policy, extra: 1 } }), 5_000)).toBe(true)
    expect(answerTo(denied, check(2 ** 41, { policy: { ...policy, extra: 2 ** 40 } }), 5_000)).toBe(false)
    expect(answerTo(refusing(), check(1, { policy: { ...FIXED, limit: 9 } }))).toBe(true)
  })

  it("leaves a bucket to Redis if a higher ceiling makes the bucket's unit of time longer", () => {
    // (441,650,590 + 1) * 20,394,401 is 2^53 - 1. With one more unit, fractions of a unit are counted in seconds.
    const policy: Policy = { ...FIXED, algorithm: "token-bucket", burst: 441_650_589, windowMs: 20_394_401 }
    const state = { startMs: SERVER_MS, current: 441_650_589, previous: 0 }
    const denied = refusing(check(1, { policy }), LONGEST_MS, state)
    const row = (extra: number) => answerTo(denied, check(1 + extra, { policy: { ...policy, extra } }))
    expect([row(0), row(1), row(2)]).toEqual([true, true, false])
  })

  it.each([-0.1, Number.NaN])(
    "forgets a counter permanently if the clock reads %d ms after its refusal",
    (afterMs) => {
      const denied = refusing()
      expect([answerTo(denied, check(), afterMs), answerTo(denied, check(), 1)]).toEqual([false, false])
    },
  )

  it.each([1, 500, 5_998])("trusts a refusal for no longer than configured: %i ms", (longestMs) => {
    expect(answerTo(refusing(check(), longestMs), check(), longestMs - 0.1)).toBe(true)
    expect(answerTo(refusing(check(), longestMs), check(), longestMs)).toBe(false)
  })

  it("stores nothing if it is disabled", () => {
    expect(refusing(check(), 0).isEmpty).toBe(true)
  })

  it("uses the latest server time that was reported for the counters of a request", () => {
    const denied = refusing()
    const other = of("alice", "counter1")
    // The server's clock was set forward by 5 ms between the two reports.
    denied.learn(
      [other],
      { nowMs: SERVER_MS + 105, granted: false, checks: [{ state: full(), taken: 0 }] },
      {
        sentAtMs: SENT_MS + 100,
        answeredAtMs: SENT_MS + 100,
      },
    )
    expect(denied.answer([check(), other], SENT_MS + 100)?.nowMs).toBe(SERVER_MS + 105)
  })

  it("deletes the given counters in forget(), and all counters in clear()", () => {
    const denied = refusing()
    learn(denied, [
      [of("bob"), full()],
      [of("carol"), full()],
      [of("alice", "counter1"), full()],
    ])
    denied.forget([check(), of("bob"), of("nobody"), of("alice", "counter2")])
    const knows = () =>
      [of("alice"), of("bob"), of("carol"), of("alice", "counter1")].map((one) => answerTo(denied, one))
    expect([knows(), denied.isEmpty]).toEqual([[false, false, true, true], false])
    denied.clear()
    expect([knows(), denied.isEmpty]).toEqual([[false, false, false, false], true])
  })

  it("never remembers permits, so it refuses a request for permits only if a rate refuses the request", () => {
    const permits = check(1, { policy: { ...FIXED, counter: "counter1", algorithm: "in-flight" } })
    const denied = new DenyCache(LONGEST_MS)
    learn(denied, [[permits, full()]])
    expect(denied.isEmpty).toBe(true)
    learn(denied, [
      [check(), full({ current: 3 })],
      [permits, full()],
    ])
    expect(countsIn(denied, [permits])).toBeUndefined()
    expect(countsIn(denied, [check(), permits])).toBeUndefined()
    learn(denied, [
      [check(), full()],
      [permits, full({ current: 0 })],
    ])
    expect(countsIn(denied, [check(), permits])).toEqual([10, undefined])
    expect(countsIn(denied, [permits, check()])).toEqual([undefined, 10])
  })

  it("leaves a request to Redis if a penalty may count a refusal by permits", () => {
    const held = { ...FIXED, counter: "counter1", algorithm: "in-flight" } as const
    const penalty = { refusals: 3, withinMs: 1_000, forMs: [5_000] }
    const policy: Policy = { ...FIXED, counter: "counter2", algorithm: "penalty", limit: 3, penalty }
    const request = (shadow: boolean, cost: number) => [
      check(),
      check(cost, { policy: held, shadow }),
      check(1, { policy }),
    ]
    const denied = new DenyCache(LONGEST_MS)
    learn(denied, [
      [check(), full()],
      [check(1, { policy: held }), full()],
      [check(1, { policy }), { startMs: SERVER_MS, current: 0, previous: 0 }],
    ])
    expect(countsIn(denied, request(false, 1))).toBeUndefined()
    // A penalty counts no refusal of a shadow rule, of a request of 0 units, or of a cost that can never fit.
    expect(countsIn(denied, request(true, 1))).toEqual([10, undefined, 0])
    expect(countsIn(denied, request(false, 0))).toEqual([10, undefined, 0])
    expect(countsIn(denied, request(false, 11))).toEqual([10, undefined, 0])
  })

  it("leaves a request to Redis once its block may be over, because further refusals would then count", () => {
    const penalty = { refusals: 3, withinMs: 1_000, forMs: [5_000] }
    const policy: Policy = { ...FIXED, counter: "counter1", algorithm: "penalty", limit: 3, penalty }
    const denied = new DenyCache(LONGEST_MS)
    const request = [check(), check(1, { policy })]
    learn(denied, [
      [check(), full()],
      [check(1, { policy }), { startMs: SERVER_MS, current: 3, previous: 1 }],
    ])
    expect([4_998, 4_999].map((afterMs) => countsIn(denied, request, afterMs))).toEqual([[10, 3], undefined])
    // Under a changed penalty, the same block ends at another time.
    const longer = check(1, { policy: { ...policy, penalty: { ...penalty, forMs: [6_000] } } })
    expect(countsIn(denied, [check(), longer])).toBeUndefined()
  })

  it("forgets the oldest counters when the logs of all counters take up too many bytes", () => {
    const denied = new DenyCache(LONGEST_MS)
    const parts = "x".repeat(5 * 1024 * 1024)
    const names = ["alice", "bob", "carol", "dave"]
    for (const name of names) learn(denied, [[of(name), full({ parts })]])
    expect(names.map((name) => answerTo(denied, of(name)))).toEqual([false, false, true, true])
  })
})
