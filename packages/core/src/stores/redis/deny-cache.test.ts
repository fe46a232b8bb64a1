import fc from "fast-check"
import { describe, expect, it } from "vitest"
import type { CounterState } from "../../algorithms/algorithm.ts"
import { algorithmOf } from "../../algorithms/by-name.ts"
import type { Policy } from "../../policy.ts"
import type { Check } from "../store.ts"
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
const DAY_MS = START_MS - (START_MS % 86_400_000)
const LONGEST_MS = 10_000
/** Six seconds before the window's end, and an instant of this process' clock that is the same. */
const SERVER_MS = START_MS + 54_000
const SENT_MS = 777.25
const BETWEEN = { sentAtMs: SENT_MS, answeredAtMs: SENT_MS }

function check(cost = 1, more: Partial<Check> = {}): Check {
  return { policy: FIXED, partition: "alice", cost, shadow: false, ...more }
}

function of(partition: string, counter: string = FIXED.counter): Check {
  return check(1, { partition, policy: { ...FIXED, counter } })
}

function full(more: Partial<CounterState> = {}): CounterState {
  return { startMs: START_MS, current: 10, previous: 0, ...more }
}

/** A cache that knows that `refused` was refused, with the whole limit taken. */
function refusing(refused: Check = check(), longestMs = LONGEST_MS, state = full()): DenyCache {
  const denied = new DenyCache(longestMs)
  denied.remember(refused, state, SERVER_MS, BETWEEN)
  return denied
}

function answerTo(denied: DenyCache, asked: Check, afterMs = 0): boolean {
  return denied.answer([asked], SENT_MS + afterMs) !== undefined
}

describe("DenyCache", () => {
  it("answers with the state that refused, at the server's time", () => {
    expect(refusing().answer([check()], SENT_MS + 1_000.9)).toEqual({
      nowMs: SERVER_MS + 1_000,
      granted: false,
      checks: [{ state: { startMs: START_MS, current: 10, previous: 0 }, taken: 0 }],
      isRemembered: true,
    })
  })

  it("believes a refusal from when it was asked for, and tells the wait from when it had come", () => {
    const denied = new DenyCache(LONGEST_MS)
    const between = { sentAtMs: SENT_MS, answeredAtMs: SENT_MS + 40 }
    denied.remember(check(), full(), SERVER_MS, between)
    const toldAt = (afterMs: number) => denied.answer([check()], SENT_MS + afterMs)?.nowMs
    expect([20, 40, 41, 5_998].map(toldAt)).toEqual([0, 0, 1, 5_958].map((ms) => SERVER_MS + ms))
    expect(toldAt(5_999)).toBeUndefined()
  })

  it("brings the state to the server's present window", () => {
    const denied = refusing(check(10, { policy: SLIDING }), LONGEST_MS, full({ current: 9 }))
    expect(denied.answer([check(10, { policy: SLIDING })], SENT_MS + 7_000)).toEqual({
      nowMs: SERVER_MS + 7_000,
      granted: false,
      checks: [{ state: { startMs: START_MS + 60_000, current: 0, previous: 9 }, taken: 0 }],
      isRemembered: true,
    })
  })

  it("tells the counters of a request that it did not look at from the one that refused", () => {
    const denied = refusing()
    const answer = denied.answer([of("bob"), check(), of("carol")], SENT_MS)
    expect(answer?.checks.map((counted) => counted?.state.current)).toEqual([undefined, 10, undefined])
  })

  it.each([
    { keys: ["minute", "day"], told: [undefined, 40] },
    { keys: ["day", "minute"], told: [40, undefined] },
  ])("answers a request that several limits refuse by the longest wait: $keys", ({ keys, told }) => {
    const day = check(1, { policy: { ...FIXED, counter: "counter1", windowMs: 86_400_000, limit: 40 } })
    const known: Record<string, Check> = { minute: check(), day }
    const denied = refusing()
    denied.remember(check(), full(), SERVER_MS, BETWEEN)
    denied.remember(day, full({ current: 40, startMs: DAY_MS }), SERVER_MS, BETWEEN)
    const checks = keys.map((key) => known[key] as Check)
    expect(denied.answer(checks, SENT_MS)?.checks.map((counted) => counted?.state.current)).toEqual(told)
  })

  it("answers a request that several limits refuse for as long by the first of them", () => {
    const denied = refusing()
    denied.remember(of("alice", "counter1"), full(), SERVER_MS, BETWEEN)
    const told = denied.answer([check(), of("alice", "counter1")], SENT_MS)?.checks
    expect(told?.map((counted) => counted?.state.current)).toEqual([10, undefined])
  })

  it.each<{ readonly what: string; readonly asked: Check; readonly isRefused: boolean }>([
    { what: "the same", asked: check(3), isRefused: true },
    { what: "more units", asked: check(4), isRefused: true },
    { what: "fewer units", asked: check(2), isRefused: false },
    { what: "no units", asked: check(0), isRefused: false },
    { what: "units of a lower limit", asked: check(3, { policy: { ...FIXED, limit: 9 } }), isRefused: true },
    {
      what: "units of a higher limit",
      asked: check(3, { policy: { ...FIXED, limit: 11 } }),
      isRefused: false,
    },
    { what: "units in shadow", asked: check(3, { shadow: true }), isRefused: false },
  ])("knows whether $what would be refused: $isRefused", ({ asked, isRefused }) => {
    const denied = refusing(check(3))
    expect(answerTo(denied, asked)).toBe(isRefused)
    // What it cannot answer, it still knows.
    expect(answerTo(denied, check(3))).toBe(true)
  })

  it("does not know whether more than was allowed above the limit is refused", () => {
    const above = (extra: number) => check(1, { policy: { ...FIXED, extra } })
    const denied = refusing(above(2), LONGEST_MS, full({ current: 12 }))
    expect([answerTo(denied, above(1)), answerTo(denied, above(2)), answerTo(denied, above(3))]).toEqual([
      true,
      true,
      false,
    ])
    // What is admitted there makes the wait of others longer than the one that was remembered.
    expect([answerTo(denied, above(2)), denied.size]).toEqual([false, 0])
  })

  it("does not know of a bucket of the same size that is filled faster", () => {
    const policy: Policy = { ...FIXED, algorithm: "token-bucket", burst: 10 }
    const state = { startMs: SERVER_MS, current: 10, previous: 0 }
    const denied = refusing(check(1, { policy }), LONGEST_MS, state)
    expect(answerTo(denied, check(1, { policy: { ...policy, limit: 11 } }), 5_000)).toBe(false)
    expect(answerTo(denied, check(1, { policy: { ...policy, limit: 9 } }), 5_000)).toBe(true)
  })

  it.each<{ readonly afterMs: number; readonly isRefused: boolean }>([
    { afterMs: -0.1, isRefused: false },
    { afterMs: 0, isRefused: true },
    { afterMs: 5_998.9, isRefused: true },
    { afterMs: 5_999, isRefused: false },
    { afterMs: 6_000, isRefused: false },
    { afterMs: Number.NaN, isRefused: false },
  ])(
    "believes a refusal of 6 s to the last whole millisecond that is certain: after $afterMs ms, $isRefused",
    (row) => {
      const denied = refusing()
      expect([answerTo(denied, check(), row.afterMs), denied.size]).toEqual([
        row.isRefused,
        row.isRefused ? 1 : 0,
      ])
    },
  )

  it.each([1, 500, 5_998])("believes none for longer than it was told to: %i ms", (longestMs) => {
    expect(answerTo(refusing(check(), longestMs), check(), longestMs - 0.1)).toBe(true)
    expect(answerTo(refusing(check(), longestMs), check(), longestMs)).toBe(false)
  })

  it.each<{ readonly what: string; readonly asked?: Check; longestMs?: number; state?: CounterState }>([
    { what: "anything when it is turned off", longestMs: 0 },
    { what: "what never fits", asked: check(11) },
    { what: "what was not refused", state: full({ current: 9 }) },
    { what: "what ends within the millisecond", state: full({ startMs: START_MS - 5_999 }) },
  ])("does not remember $what", ({ asked, longestMs, state }) => {
    expect(refusing(asked, longestMs, state).size).toBe(0)
  })

  it("remembers the latest refusal of a key", () => {
    const denied = refusing(check(1))
    denied.remember(check(3), full({ current: 8 }), SERVER_MS + 10, {
      sentAtMs: SENT_MS + 10,
      answeredAtMs: SENT_MS + 10,
    })
    expect([answerTo(denied, check(2), 10), answerTo(denied, check(3), 10), denied.size]).toEqual([
      false,
      true,
      1,
    ])
  })

  it("forgets one key, or all", () => {
    const denied = refusing()
    denied.remember(of("bob"), full(), SERVER_MS, BETWEEN)
    denied.forget(check())
    expect([answerTo(denied, check()), denied.size]).toEqual([false, 1])
    denied.clear()
    expect(denied.size).toBe(0)
  })

  it("keeps 100,000 refusals, and drops a hundred and one at once that were given longest ago", () => {
    const denied = new DenyCache(LONGEST_MS)
    const knows = (partition: string) => denied.answer([of(partition)], SENT_MS) !== undefined
    for (let i = 0; i < 100_000; i++) denied.remember(of(`${i}`), full(), SERVER_MS, BETWEEN)
    denied.remember(of("0"), full(), SERVER_MS, BETWEEN)
    denied.remember(of("one more"), full(), SERVER_MS, BETWEEN)
    expect(denied.size).toBe(99_900)
    const known = ["0", "1", "101", "102", "one more"].map(knows)
    expect(known).toEqual([true, false, false, true, true])
  })

  it("keeps the counters of a client apart", () => {
    const denied = refusing()
    expect([answerTo(denied, of("alice", "counter1")), denied.size]).toEqual([false, 1])
    denied.remember(of("alice", "counter1"), full(), SERVER_MS, BETWEEN)
    denied.forget(of("alice", "counter1"))
    denied.forget(of("alice", "counter2"))
    expect([answerTo(denied, check()), answerTo(denied, of("alice", "counter1")), denied.size]).toEqual([
      true,
      false,
      1,
    ])
  })

  it("lets the flood of one counter push out its own refusals, and one of it where another counter is new", () => {
    const denied = new DenyCache(LONGEST_MS)
    const knows = (one: Check) => answerTo(denied, one)
    denied.remember(of("quiet", "counter1"), full(), SERVER_MS, BETWEEN)
    for (let i = 0; i < 100_000; i++) denied.remember(of(`${i}`), full(), SERVER_MS, BETWEEN)
    expect([denied.size, knows(of("quiet", "counter1")), knows(of("99")), knows(of("100"))]).toEqual([
      99_901,
      true,
      false,
      true,
    ])
    for (let i = 0; i < 99; i++) denied.remember(of(`${100_000 + i}`), full(), SERVER_MS, BETWEEN)
    denied.forget(of("quiet", "counter1"))
    denied.remember(of("last"), full(), SERVER_MS, BETWEEN)
    denied.remember(of("new", "counter2"), full(), SERVER_MS, BETWEEN)
    expect([denied.size, knows(of("199")), knows(of("200")), knows(of("new", "counter2"))]).toEqual([
      99_901,
      false,
      true,
      true,
    ])
  })

  it("makes room by what is over, of which ever so much is left, before it drops what is believed", () => {
    const laterMs = 20_000
    const later = { sentAtMs: SENT_MS + laterMs, answeredAtMs: SENT_MS + laterMs }
    const log = full({ parts: "0".repeat(65_536) })
    for (const [many, state] of [
      [100_000, full()],
      [256, log],
    ] as const) {
      const denied = new DenyCache(LONGEST_MS)
      for (let i = 0; i < many; i++) denied.remember(of(`${i}`, "flood"), state, SERVER_MS, BETWEEN)
      const names = ["a", "b", "c"].map((name) => of(name, "quiet"))
      for (const one of names) {
        denied.remember(one, { ...state, startMs: START_MS + 60_000 }, SERVER_MS + laterMs, later)
      }
      expect(names.map((one) => answerTo(denied, one, laterMs))).toEqual([true, true, true])
      // A thousand of them at once, so that nobody waits for that.
      expect(denied.size).toBe(3 + Math.max(0, many - 1_000))
    }
  })

  it("keeps 16 MB of full logs, and drops the one that was given longest ago", () => {
    const denied = new DenyCache(LONGEST_MS)
    const log = full({ parts: "0".repeat(65_536) })
    const knows = (one: Check) => answerTo(denied, one)
    denied.remember(of("quiet", "counter1"), full({ parts: "10" }), SERVER_MS, BETWEEN)
    for (let i = 0; i < 1_000; i++) denied.remember(of(`${i}`), log, SERVER_MS, BETWEEN)
    expect([denied.size, denied.bytes]).toEqual([256, 255 * 65_536 + 2])
    expect([of("744"), of("745"), of("999"), of("quiet", "counter1")].map(knows)).toEqual([
      false,
      true,
      true,
      true,
    ])
    denied.remember(of("999"), full(), SERVER_MS, BETWEEN)
    denied.forget(of("quiet", "counter1"))
    expect([denied.size, denied.bytes]).toEqual([255, 254 * 65_536])
    // A larger one takes the place of many.
    denied.remember(of("large"), full({ parts: "0".repeat(10 * 65_536) }), SERVER_MS, BETWEEN)
    expect([denied.size, denied.bytes]).toEqual([248, 256 * 65_536])
    denied.clear()
    expect([denied.size, denied.bytes]).toEqual([0, 0])
  })

  it("makes room for a large one by others that are large, and not by as many small ones as there are", () => {
    const denied = new DenyCache(LONGEST_MS)
    const log = full({ parts: "0".repeat(65_536) })
    for (let i = 0; i < 1_000; i++) denied.remember(of(`${i}`, "counter1"), full(), SERVER_MS, BETWEEN)
    for (let i = 0; i < 256; i++) denied.remember(of(`${i}`, "counter2"), log, SERVER_MS, BETWEEN)
    denied.remember(of("new", "counter3"), log, SERVER_MS, BETWEEN)
    expect([denied.size, denied.bytes]).toEqual([1_256, 256 * 65_536])
    const known = [of("0", "counter1"), of("0", "counter2"), of("1", "counter2"), of("new", "counter3")]
    expect(known.map((one) => answerTo(denied, one))).toEqual([true, false, true, true])
    // Behind one that takes nothing there is the one that does.
    denied.clear()
    denied.remember(of("small"), full(), SERVER_MS, BETWEEN)
    denied.remember(of("large"), full({ parts: "0".repeat(256 * 65_536) }), SERVER_MS, BETWEEN)
    denied.remember(of("larger", "counter1"), log, SERVER_MS, BETWEEN)
    expect(answerTo(denied, of("larger", "counter1"))).toBe(true)
    expect(denied.bytes).toBe(65_536)
  })

  it("makes room among those of one counter where there is no other, and keeps none that is larger than all of it", () => {
    const denied = new DenyCache(LONGEST_MS)
    const log = (bytes: number) => full({ parts: "0".repeat(bytes) })
    denied.remember(of("small"), full(), SERVER_MS, BETWEEN)
    denied.remember(of("large"), log(256 * 65_536), SERVER_MS, BETWEEN)
    denied.remember(of("new"), log(65_536), SERVER_MS, BETWEEN)
    expect([of("small"), of("large"), of("new")].map((one) => answerTo(denied, one))).toEqual([
      false,
      false,
      true,
    ])
    denied.remember(of("too large"), log(256 * 65_536 + 1), SERVER_MS, BETWEEN)
    expect([denied.size, denied.bytes]).toEqual([0, 0])
  })

  it("remembers of a request what refused it, and nothing where every refusal has to be seen", () => {
    const seen: Policy = { ...FIXED, counter: "counter1", countRejected: true }
    const block: Policy = {
      ...FIXED,
      counter: "counter2",
      algorithm: "penalty",
      limit: 3,
      penalty: { refusals: 3, withinMs: 60_000, forMs: 60_000 },
    }
    const blocked = { startMs: SERVER_MS, current: 3, previous: 1 }
    const knownOf = (...some: readonly (readonly [Check, CounterState | undefined])[]) => {
      const denied = new DenyCache(LONGEST_MS)
      const counted = some.map(([, state]) => state && { state, taken: 0 })
      const checks = some.map(([one]) => one)
      denied.rememberAll(checks, { nowMs: SERVER_MS, granted: false, checks: counted }, BETWEEN)
      const known = checks.filter((one) => denied.answer([one], SENT_MS) !== undefined)
      expect(denied.size).toBe(known.length)
      return known.map(({ policy }) => policy.counter)
    }
    const free = full({ current: 9 })
    const other = check(1, { policy: { ...FIXED, counter: "counter3" } })
    expect(knownOf([check(), full()], [other, free])).toEqual(["counter0"])
    expect(knownOf([check(), full()], [other, full()])).toEqual(["counter0", "counter3"])
    expect(knownOf([check(1, { shadow: true }), full()], [other, full()])).toEqual(["counter3"])
    expect(knownOf([check(), undefined], [other, full()])).toEqual(["counter3"])
    expect(knownOf([check(1, { policy: seen }), full()])).toEqual([])
    expect(knownOf([check(), full()], [check(1, { policy: seen }), free])).toEqual([])
    expect(knownOf([check(), full()], [check(1, { policy: block }), blocked])).toEqual(["counter2"])
    // Not even what is known from elsewhere.
    for (const policy of [seen, block]) {
      expect(refusing().answer([check(), check(1, { policy })], SENT_MS)).toBeUndefined()
    }
  })

  it("knows nothing any more of a block that was made shorter and is over", () => {
    const penalty = { refusals: 3, withinMs: 1_000, forMs: 60_000 }
    const policy: Policy = { ...FIXED, algorithm: "penalty", limit: 3, penalty }
    const blocked = { startMs: SERVER_MS, current: 3, previous: 1 }
    const denied = refusing(check(1, { policy }), LONGEST_MS, blocked)
    const shorter = check(1, { policy: { ...policy, penalty: { ...penalty, forMs: 5_000 } } })
    expect([4_999, 5_000].map((afterMs) => answerTo(denied, shorter, afterMs))).toEqual([true, false])
    expect(answerTo(denied, check(1, { policy }), 5_000)).toBe(true)
  })

  it("refuses nobody whom the server would admit, wherever in its millisecond it decided", () => {
    const story = fc.record({
      algorithm: fc.constantFrom(SLIDING.algorithm, FIXED.algorithm),
      limit: fc.integer({ min: 1, max: 20 }),
      previous: fc.nat(30),
      current: fc.nat(30),
      offsetMs: fc.nat(59_999),
      cost: fc.integer({ min: 1, max: 5 }),
      // The server's time when it decided has a fraction that it does not tell.
      fraction: fc.double({ min: 0, max: 0.999, noNaN: true }),
      onTheWayMs: fc.double({ min: 0, max: 5, noNaN: true }),
      moreCost: fc.integer({ min: -1, max: 3 }),
      lessLimit: fc.integer({ min: -1, max: 3 }),
      // Of the wait, and from there: near its end as often as anywhere.
      part: fc.oneof(fc.constant(1), fc.double({ min: 0, max: 1.2, noNaN: true })),
      fromThereMs: fc.double({ min: -3, max: 1, noNaN: true }),
    })
    let refusals = 0
    fc.assert(
      fc.property(story, ({ algorithm, limit, offsetMs, cost, fraction, onTheWayMs, ...rest }) => {
        const policy: Policy = { ...SLIDING, algorithm, limit }
        const counting = algorithmOf(policy)
        const serverMs = START_MS + offsetMs
        const previous = algorithm === "sliding-window" ? rest.previous : 0
        const stored = { startMs: START_MS, current: rest.current, previous }
        const refusing = counting.at(stored, policy, serverMs)
        const waitMs = counting.retryAfterMs(refusing, policy, cost, serverMs)
        if (waitMs === 0 || waitMs === Number.POSITIVE_INFINITY) return
        const denied = new DenyCache(1_000_000)
        denied.remember(check(cost, { policy }), refusing, serverMs, BETWEEN)
        const afterMs = Math.max(onTheWayMs, rest.part * waitMs + rest.fromThereMs)
        const asked = check(cost + rest.moreCost, { policy: { ...policy, limit: limit - rest.lessLimit } })
        if (denied.answer([asked], SENT_MS + afterMs) === undefined) return
        refusals++
        const thenMs = Math.floor(serverMs + fraction - onTheWayMs + afterMs)
        const state = counting.at(refusing, asked.policy, thenMs)
        expect(counting.admits(state, asked.policy, asked.cost, thenMs)).toBe(false)
      }),
      { seed: 9_003, numRuns: 5_000 },
    )
    expect(refusals).toBeGreaterThan(300)
  })
})
