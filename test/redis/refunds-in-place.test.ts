import { peekStore } from "@sluice/core/stores"
import fc from "fast-check"
import { beforeEach, describe, expect, it } from "vitest"
import { SLIDING as MINUTELY } from "../../packages/contracts/src/store/asking.ts"
import type { CounterState } from "../../packages/core/src/algorithms/algorithm.ts"
import { algorithmOf, releases } from "../../packages/core/src/algorithms/kinds.ts"
import { type ManualClock, manualClock } from "../../packages/core/src/ground/manual-clock.ts"
import type { Policy } from "../../packages/core/src/ground/policy.ts"
import { memoryStore } from "../../packages/core/src/stores/memory/memory-store.ts"
import type { Check, Refund, Store } from "../../packages/core/src/stores/store.ts"
import { keyNamer } from "../../packages/redis/src/key.ts"
import { redisForTests } from "../servers/redis-for-tests.ts"
import { examples } from "../test-length.ts"
import { compactStore } from "./compact-store.ts"
import { callsBetween, callsOf, keysWithoutTtl } from "./counted.ts"
import { MOST_PACKED } from "./traced-policies.ts"

// refund.lua changes the number in a key with one INCRBY if the key's window and expiry stay the same. Each trace
// below ends at the edge of what one INCRBY can do. Afterwards, the key must contain the same state as the memory
// store, and expire when that state ends.

const DAY_MS = 86_400_000
const HOUR_MS = DAY_MS / 24
const MOST_STRICT = 2 ** 17 - 1
/** The start of a day. */
const START_MS = Date.UTC(2024, 0, 1)
/** The TTL of a key may be shorter by this time, because the server's clock advances during a test. */
const SLACK_MS = 60_000

const SLIDING: Policy = { ...MINUTELY, limit: 100, windowMs: DAY_MS }
const PERMITS: Policy = { ...SLIDING, name: "permits", counter: "permits", algorithm: "in-flight" }
const FIXED: Policy = { ...SLIDING, name: "fixed", counter: "fixed", algorithm: "fixed-window" }
const FIRST_HIT: Policy = { ...FIXED, name: "first", counter: "first", align: "first-hit" }
const STRICT: Policy = {
  ...SLIDING,
  name: "strict",
  counter: "strict",
  algorithm: "sliding-window-strict",
  buckets: 24,
}

/**
 * A reset, a take of some units, a wait, or a refund. A refund has the index of its take, and is a charge if its units
 * are negative.
 */
type Step =
  | "reset"
  | { readonly take: number }
  | { readonly waitMs: number }
  | { readonly refund: number; readonly of: number }

const take = (units: number): Step => ({ take: units })
const wait = (waitMs: number): Step => ({ waitMs })
const refund = (units: number, of: number): Step => ({ refund: units, of })

/** The traces. A period is a window or, for the strict window, a sub-window. */
const traces = (periodMs: number, most: number): readonly (readonly [string, readonly Step[]])[] => [
  ["some of the units of the current period", [take(5), refund(2, 0)]],
  ["all of the units of the current period", [take(5), refund(5, 0)]],
  ["more than the units of the current period", [take(5), refund(6, 0)]],
  ["more than the units of the current period, twice", [take(5), refund(6, 0), refund(1, 0)]],
  [
    "all of the units of the current period after another period",
    [take(5), wait(periodMs), take(3), refund(3, 1)],
  ],
  [
    "more than the units of the current period after another period",
    [take(5), wait(periodMs), take(3), refund(4, 1)],
  ],
  [
    "far more than the units of the current period after another period",
    [take(5), wait(periodMs), take(3), refund(99, 1)],
  ],
  ["some units of the previous period", [take(5), wait(periodMs), take(3), refund(2, 0)]],
  ["all units of the previous period", [take(5), wait(periodMs), take(3), refund(5, 0)]],
  ["more than the units of the previous period", [take(5), wait(periodMs), take(3), refund(6, 0)]],
  ["units of the previous period before the next take", [take(5), wait(periodMs), refund(2, 0)]],
  ["units of a period before the previous one", [take(5), wait(2 * periodMs), take(3), refund(2, 0)]],
  ["units that were reset", [take(5), "reset", refund(2, 0)]],
  ["a charge after a reset", [take(5), "reset", refund(-2, 0)]],
  ["a charge to the current period", [take(5), refund(-2, 0)]],
  ["a charge above the limit", [take(5), refund(-200, 0), take(1)]],
  ["a charge to an unused counter", [take(0), refund(-2, 0), refund(-3, 0)]],
  ["a charge to an unused counter above the limit", [take(0), refund(-200, 0)]],
  [
    "a charge after the units of the current period were returned",
    [take(5), wait(periodMs), take(3), refund(3, 1), refund(-2, 1)],
  ],
  ["a first charge of the next period", [take(5), wait(periodMs), take(0), refund(-2, 1), refund(-1, 1)]],
  ["a charge to the previous period after a reset", [take(5), wait(periodMs), "reset", refund(-2, 0)]],
  ["a charge to the previous period", [take(5), wait(periodMs), take(3), refund(-2, 0)]],
  ["a charge to the previous period before the next take", [take(5), wait(periodMs), refund(-2, 0)]],
  [
    "more than all units of the previous period as a charge",
    [take(5), wait(periodMs), refund(-9, 0), take(1)],
  ],
  [
    "all units that were charged to the current period",
    [take(5), wait(periodMs), refund(-5, 0), take(0), refund(5, 1), take(2)],
  ],
  ["a charge to a period before the previous one", [take(5), wait(2 * periodMs), take(3), refund(-2, 0)]],
  ["all units, before another take", [take(5), refund(5, 0), take(2)]],
  ["a charge up to the largest packed count", [take(5), refund(5 - most, 0), refund(1, 0)]],
  ["a charge above the largest packed count", [take(5), refund(4 - most, 0), refund(1, 0)]],
  ["two charges above the largest packed count", [take(5), refund(-most, 0), refund(-most, 0)]],
  [
    "a charge above the largest packed count of the previous period",
    [take(5), wait(periodMs), take(3), refund(-3 * most, 0)],
  ],
  [
    "charges above the largest packed count of the previous period",
    [take(5), wait(periodMs), take(3), refund(-most, 0), refund(-most, 0), refund(-most, 0)],
  ],
  [
    "units of a window that the clock went back to",
    [take(5), wait(periodMs), take(3), wait(-periodMs), refund(2, 0)],
  ],
  [
    "units of the window before the one that the clock went back to",
    [take(5), wait(2 * periodMs), take(3), wait(-periodMs), refund(2, 0)],
  ],
  ["a charge above the largest packed count to an unused counter", [take(0), refund(-most - 1, 0)]],
]

const { client, server } = await redisForTests()
let clock: ManualClock
beforeEach(async () => {
  await client.flushall()
  clock = manualClock(START_MS)
})

async function play(store: Store, policy: Policy, steps: readonly Step[]): Promise<void> {
  const taken: Refund[] = []
  for (const step of steps) {
    if (step === "reset") await store.reset([{ policy, partition: "" }])
    else if ("waitMs" in step) clock.advance(step.waitMs)
    else if ("take" in step) {
      const answer = await store.take([{ policy, partition: "", cost: step.take, shadow: false }])
      const state = answer?.checks[0]?.state
      if (state === undefined) throw new Error("the store did not tell what was counted")
      taken.push({ policy, partition: "", units: 0, after: state })
    } else await store.refund([{ ...(taken[step.of] as Refund), units: step.refund }])
  }
}

const goesBack = (step: Step): boolean => typeof step === "object" && "waitMs" in step && step.waitMs < 0

const stateOf = async (store: Store, policy: Policy) =>
  (await peekStore(store, [{ policy, partition: "", cost: 0, shadow: false }]))?.checks[0]?.state

describe.each([
  ["a sliding window", SLIDING, DAY_MS, MOST_PACKED],
  ["two windows of permits", PERMITS, DAY_MS, MOST_PACKED],
  ["a fixed window", FIXED, DAY_MS, MOST_PACKED],
  ["a window from the first hit", FIRST_HIT, DAY_MS, MOST_PACKED],
  ["a strict window", STRICT, HOUR_MS, MOST_STRICT],
] as const)("a refund in %s", (_name, policy, periodMs, most) => {
  it.each(traces(periodMs, most))("of %s", async (_what, steps) => {
    const store = compactStore(client, clock)
    const twin = memoryStore({ clock })
    await play(twin, policy, steps)
    clock.set(START_MS)
    await play(store, policy, steps)
    const left = await client.pttl(keyNamer("")({ policy, partition: "" }))
    const expected = await stateOf(twin, policy)
    if (expected === undefined) throw new Error("the memory store did not tell what was counted")
    expect(await stateOf(store, policy)).toEqual(expected)
    const endsInMs = algorithmOf(policy).emptyAtMs(expected, policy) - clock.now()
    // A key with permits lasts for two windows, even if the current window contains none.
    const lastsMs = releases(policy) ? expected.startMs + 2 * periodMs - clock.now() : endsInMs
    // A key that contains no units may remain until it expires.
    if (expected.current === 0 && expected.previous === 0) expect(left).not.toBe(-1)
    // Keys expire by the server's own clock, which did not go back.
    else if (steps.some(goesBack)) expect(left).toBeGreaterThan(0)
    else {
      expect(left).toBeGreaterThan(endsInMs - SLACK_MS)
      expect(left).toBeLessThanOrEqual(lastsMs)
    }
    store.close()
  })
})

it("many refunds in one call change the same counters as one after the other", async () => {
  const policies = [SLIDING, PERMITS, FIXED, FIRST_HIT, STRICT]
  const check = (policy: Policy, partition: string) => ({ policy, partition, cost: 3, shadow: false })
  const checks = policies.flatMap((policy) => ["a", "b", "c", "d"].map((name) => check(policy, name)))
  const one = fc.record({
    nth: fc.nat(checks.length - 1),
    following: fc.constantFrom(0, 0, 1, 2, 3),
    units: fc.constantFrom(1, 2, 9, -1),
  })
  const property = fc.asyncProperty(fc.array(one, { maxLength: 12 }), fc.nat(2), async (some, periods) => {
    await client.flushall()
    clock.set(START_MS)
    const [store, twin] = [compactStore(client, clock), memoryStore({ clock })]
    const after: (CounterState | undefined)[] = []
    for (const each of checks) after.push((await store.take([each])).checks[0]?.state)
    for (const each of checks) twin.take([each])
    clock.advance(periods * HOUR_MS * 12)
    // Refunds of neighboring counters are often equal, so they share a run in the call.
    const refunds = some.flatMap(({ nth, following, units }) =>
      Array.from({ length: following + 1 }, (_, i): Refund => {
        const place = (nth + i) % checks.length
        return { ...(checks[place] as Check), units, after: after[place] as CounterState }
      }),
    )
    await store.refund(refunds)
    for (const refund of refunds) twin.refund([refund])
    const [read, expected] = [await store.read(checks), twin.read(checks)]
    expect(read.counters.map(({ state }) => ({ parts: "", ...state }))).toEqual(
      expected.counters.map(({ state }) => ({ parts: "", ...state })),
    )
    expect(await keysWithoutTtl(server)).toEqual([])
    store.close()
  })
  await fc.assert(property, { seed: 8_001, numRuns: examples(60, 300) })
})

describe("the permits of one client", () => {
  const check = (cost: number): Check => ({ policy: PERMITS, partition: "ann", cost, shadow: false })
  const release = (after: CounterState, units: number): Refund => ({ ...check(0), units, after })

  it("are taken and released with one command each, and their key never expires before they end", async () => {
    const store = compactStore(client, clock)
    const key = keyNamer("")(check(1))
    const takeOne = async () => (await store.take([check(1)])).checks[0]?.state as CounterState
    await store.refund([release(await takeOne(), 1)])
    const before = await callsOf(server)
    for (let i = 0; i < 3; i++) await store.refund([release(await takeOne(), 1)])
    expect(callsBetween(before, await callsOf(server))).toEqual({ evalsha: 6, incrby: 6 })
    expect(await client.pttl(key)).toBeGreaterThan(2 * DAY_MS - SLACK_MS)
    // At the start of the next window, the key of the last window is empty, so the first permit begins a new window.
    clock.advance(DAY_MS)
    await takeOne()
    expect(await client.pttl(key)).toBeGreaterThan(2 * DAY_MS - SLACK_MS)
    store.close()
  })

  it("are refused with two commands, and renewed with one if the current window contains permits", async () => {
    const store = compactStore(client, clock)
    const first = (await store.take([check(100)])).checks[0]?.state as CounterState
    const calls: unknown[] = []
    const note = async (work: () => unknown) => {
      const before = await callsOf(server)
      await work()
      const { evalsha: _, ...commands } = callsBetween(before, await callsOf(server))
      calls.push(commands)
    }
    await note(() => store.take([check(1)]))
    clock.advance(DAY_MS)
    await note(() => store.take([check(1)]))
    await note(() => store.refund([release(first, -50)]))
    await note(() => store.refund([release(first, -50)]))
    expect(calls).toEqual([
      { incrby: 1, decrby: 1 },
      { incrby: 1, decrby: 1 },
      { incrby: 1, set: 1 },
      { incrby: 1 },
    ])
    store.close()
  })
})

describe("a charge", () => {
  const charge = (policy: Policy): Refund => ({
    policy,
    partition: "",
    units: -2,
    after: { startMs: START_MS, current: 0, previous: 0 },
  })
  const open = (isWide: boolean) => compactStore(client, clock, { isWide })

  it("does not change another program's hash", async () => {
    const name = keyNamer("")({ policy: STRICT, partition: "" })
    await client.hset(name, "owner", "somebody")
    const store = open(false)
    await store.refund([charge(STRICT)])
    expect(await client.hgetall(name)).toEqual({ owner: "somebody" })
    store.close()
  })

  it("writes the window's full start time if keys do not expire by the store's clock", async () => {
    const store = open(true)
    await store.refund([charge(SLIDING)])
    expect(await client.get(keyNamer("")({ policy: SLIDING, partition: "" }))).toBe(`w:${START_MS}:0:2`)
    store.close()
  })
})
