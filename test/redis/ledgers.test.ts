import { beforeAll, describe, it } from "vitest"
import type { Policy } from "../../packages/core/src/ground/policy.ts"
import type { CounterKey } from "../../packages/core/src/stores/store.ts"
import { redisForTests } from "../servers/redis-for-tests.ts"
import { ALL_THAT_REMAINS, type CallStep, ONE_TOO_MANY, RENEWED } from "./call-traces.ts"
import { loadScripts, play } from "./play.ts"
import { MOST_PACKED } from "./traced-policies.ts"

const { client } = await redisForTests()

beforeAll(() => loadScripts(client))

describe.each<{ readonly what: string; readonly kind: Partial<Policy> }>([
  { what: "a sliding window", kind: {} },
  { what: "two windows of permits", kind: { algorithm: "in-flight" } },
  { what: "a sliding window with sub-windows", kind: { buckets: 2 } },
  { what: "a strict window", kind: { algorithm: "sliding-window-strict", buckets: 2 } },
])("the key of $what whose current units have all been refunded", ({ kind }) => {
  const policy: Policy = {
    name: "trace",
    counter: "counter0",
    algorithm: "sliding-window",
    limit: 10,
    windowMs: 1_000,
    align: "epoch",
    ...kind,
  }
  const counter = { policy, partition: "alice" }
  const other = { policy, partition: "bob" }
  const take = (afterMs: number, ...costs: number[]): CallStep => ({
    kind: "take",
    afterMs,
    requests: costs.map((cost) => [{ ...counter, cost, shadow: false }]),
  })
  const takeBoth = (afterMs: number, cost: number): CallStep => ({
    kind: "take",
    afterMs,
    requests: [[counter, other].map((one) => ({ ...one, cost, shadow: false }))],
  })
  /** Returns a step that takes both checks in one call, but as separate requests. */
  const takeBeside = (afterMs: number, cost: number): CallStep => ({
    kind: "take",
    afterMs,
    requests: [counter, other].map((one) => [{ ...one, cost, shadow: false }]),
  })
  const refund: CallStep = { kind: "refund", afterMs: 0, nths: [0], more: 0, moved: false }

  it.each([
    { taken: "once", again: take(10, 2) },
    { taken: "next to another key in the same call", again: takeBeside(10, 2) },
    { taken: "by several requests", again: take(10, 2, 2, 2) },
    { taken: "by some of several requests", again: take(10, 4, 4, 4, 4) },
    { taken: "by no request, because none fits", again: take(10, 9) },
    { taken: "together with another key in the same request", again: takeBoth(10, 2) },
  ])("gets the TTL of the units that are taken next: $taken", async ({ again }) => {
    const steps = [take(0, 5), take(1_000, 1), refund, again, take(995, 1), take(500, 1)]
    await play(
      client,
      { counters: [counter, other], policies: [policy], startMs: Date.UTC(2024, 0, 1), steps },
      false,
    )
  })
})

describe("a request with several checks that begins a window", () => {
  const policy: Policy = {
    name: "trace",
    counter: "counter0",
    algorithm: "sliding-window",
    limit: 10,
    windowMs: 1_000,
    align: "epoch",
  }
  const [counter, other] = ["alice", "bob"].map((partition) => ({ policy, partition })) as [
    CounterKey,
    CounterKey,
  ]
  const take = (afterMs: number, ...checks: readonly (readonly [CounterKey, number])[]): CallStep => ({
    kind: "take",
    afterMs,
    requests: [checks.map(([one, cost]) => ({ ...one, cost, shadow: false }))],
  })

  it.each([
    {
      what: "is refused if the previous window leaves too few units for one check",
      steps: [take(1_001, [other, 1], [counter, 5]), take(500, [other, 1], [counter, 5])],
    },
    {
      what: "writes nothing for a check with a cost of 0",
      steps: [take(500, [counter, 0], [other, 1]), take(2_600, [counter, 0], [other, 1])],
    },
    {
      what: "takes the units of both checks if they share one counter",
      steps: [take(1_600, [counter, 2], [counter, 3]), take(10, [counter, 1])],
    },
    {
      what: "is refused if the checks' shared counter has enough units for either check, but not for both",
      steps: [take(1_600, [counter, 4], [counter, 3]), take(10, [counter, 1])],
    },
  ])("$what", async ({ steps }) => {
    const counters = [counter, other]
    const startMs = Date.UTC(2024, 0, 1)
    await play(
      client,
      { counters, policies: [policy], startMs, steps: [take(0, [counter, 10]), ...steps] },
      false,
    )
  })
})

describe("a client that asks for one unit too many and then for all that remains", () => {
  it.each([
    { limit: 100, windowMs: 60_000 },
    { limit: MOST_PACKED, windowMs: 86_400_000 },
    { limit: 5_000_000, windowMs: 30 * 86_400_000 },
    { limit: 2 ** 50 + 7, windowMs: 60_000 },
    { limit: Number.MAX_SAFE_INTEGER - 1, windowMs: 60_000 },
    { limit: Number.MAX_SAFE_INTEGER - 1, windowMs: 1_500 * 86_400_000 },
  ])(
    "is refused and then granted the exact remainder of a limit of $limit in $windowMs ms",
    async ({ limit, windowMs }) => {
      const policy = {
        name: "trace",
        counter: "counter0",
        algorithm: "sliding-window",
        align: "epoch",
      } as const
      const counter = { policy: { ...policy, limit, windowMs }, partition: "alice" }
      const step: CallStep = {
        kind: "take",
        afterMs: Math.floor(windowMs / 7) + 13,
        requests: [ONE_TOO_MANY, ALL_THAT_REMAINS].map((cost) => [{ ...counter, cost, shadow: false }]),
      }
      const steps = Array.from({ length: windowMs > 1e11 ? 60 : 100 }, () => step)
      await play(
        client,
        { counters: [counter], policies: [counter.policy], startMs: Date.UTC(2024, 0, 1), steps },
        false,
      )
    },
  )
})

describe("a charge", () => {
  const POLICY: Policy = {
    name: "trace",
    counter: "counter0",
    algorithm: "sliding-window",
    limit: Number.MAX_SAFE_INTEGER - 1,
    windowMs: 60_000,
    align: "epoch",
  }
  const take = (afterMs: number, cost: number, policy = POLICY): CallStep => ({
    kind: "take",
    afterMs,
    requests: [[{ policy, partition: "alice", cost, shadow: false }]],
  })
  const refund = (afterMs: number, more: number): CallStep => ({
    kind: "refund",
    afterMs,
    nths: [0],
    more,
    moved: false,
  })
  const FIRST_HIT: Policy = { ...POLICY, algorithm: "fixed-window", align: "first-hit", limit: 10 }

  const PARTS: Policy = { ...POLICY, buckets: 2, limit: 10 }
  const oldest: CallStep = { kind: "refund", afterMs: 0, nths: [2], more: -6, moved: false }

  it.each<{ readonly what: string; readonly policy: Policy; readonly steps: readonly CallStep[] }>([
    {
      what: "has no effect on a counter that exceeds the largest exact number",
      policy: POLICY,
      steps: [take(0, POLICY.limit), take(119_000, 8e15), refund(0, -8e15 - 5), take(1_000, 1)],
    },
    {
      what: "has no effect on a sub-window that has just ended",
      policy: PARTS,
      steps: [take(0, 1, PARTS), take(60_000, 1, PARTS), take(30_000, 1, PARTS), oldest, take(0, 1, PARTS)],
    },
    {
      what: "is added to the window that the first request began, even if that request was refunded",
      policy: FIRST_HIT,
      steps: [take(0, 2, FIRST_HIT), refund(0, 0), refund(300, -4), take(0, 1, FIRST_HIT)],
    },
  ])("$what", async ({ policy, steps }) => {
    const counters = [{ policy, partition: "alice" }]
    const startMs = Date.UTC(2024, 0, 1)
    for (const isWide of [false, true])
      await play(client, { counters, policies: [policy], startMs, steps }, isWide)
  })
})

describe("permits", () => {
  const PERMITS: Policy = {
    name: "trace",
    counter: "counter0",
    algorithm: "in-flight",
    limit: 10,
    windowMs: 60_000,
    align: "epoch",
  }
  const COUNTER = { policy: PERMITS, partition: "alice" }
  const HUGE: Policy = { ...PERMITS, limit: MOST_PACKED + 5 }
  const COUNTED: Policy = { ...PERMITS, countRejected: true }
  const take = (afterMs: number, cost: number, policy = PERMITS): CallStep => ({
    kind: "take",
    afterMs,
    requests: [[{ policy, partition: "alice", cost, shadow: false }]],
  })
  const takeEach = (afterMs: number, ...costs: readonly number[]): CallStep => ({
    kind: "take",
    afterMs,
    requests: costs.map((cost) => [{ ...COUNTER, cost, shadow: false }]),
  })
  const peek: CallStep = { kind: "peek", afterMs: 0, requests: [[{ ...COUNTER, cost: 0, shadow: false }]] }
  const release = (nth: number, more = 0): CallStep => {
    return { kind: "refund", afterMs: 0, nths: [nth], more, moved: false }
  }
  const renew = (nth: number, afterMs = 0): CallStep => {
    return { kind: "refund", afterMs, nths: [nth], more: RENEWED, moved: false }
  }

  it.each<{ readonly what: string; readonly steps: readonly CallStep[]; readonly policy?: Policy }>([
    {
      what: "count in full until the end of the window after theirs",
      steps: [take(0, 4), take(90_000, 6), take(0, 1), take(29_999, 1), take(1, 4), take(0, 1)],
    },
    {
      what: "move to the current window when they are renewed, also above the limit",
      steps: [take(0, 4), take(0, 6), renew(1, 60_000), renew(1), renew(0), take(59_999, 1), take(1, 1)],
    },
    {
      what: "are counted again if their key was lost before they were renewed",
      steps: [
        take(0, 4),
        { kind: "reset", afterMs: 0, keys: [COUNTER] },
        renew(0, 60_000),
        take(0, 6),
        take(0, 1),
      ],
    },
    {
      what: "are counted again if their window had ended before they were renewed",
      steps: [take(0, 4), renew(0, 150_000), take(0, 6), take(0, 1)],
    },
    {
      what: "are added only as far as they are missing when their own window is still the current one",
      steps: [take(0, 4), release(0, -3), renew(0), take(60_000, 2), renew(0), take(0, 4), take(0, 1)],
    },
    {
      what: "are released from the window in which they were last counted",
      steps: [take(0, 4), take(60_000, 3), release(1), take(0, 7), release(0), release(0), take(0, 8)],
    },
    {
      what: "are released from the current window after the clock has gone back",
      steps: [take(60_000, 4), take(0, 1), take(-60_000, 2), release(2, -1), peek, renew(2), peek],
    },
    {
      what: "are granted to as many equal requests as fit",
      steps: [take(0, 9), takeEach(0, 1, 1), takeEach(60_000, 2, 2), release(0), takeEach(0, 1, 1, 1)],
    },
    {
      what: "do not count refusals",
      steps: [take(0, 9, COUNTED), take(0, 2, COUNTED), take(0, 1, COUNTED)],
      policy: COUNTED,
    },
    {
      what: "are renewed and released in the same way if their counts are too large to be packed",
      steps: [
        take(0, MOST_PACKED + 1, HUGE),
        renew(0, 60_000),
        take(0, 4, HUGE),
        release(1),
        release(0),
        peek,
      ],
      policy: HUGE,
    },
  ])("$what", async ({ steps, policy = PERMITS }) => {
    const counters = [{ policy, partition: "alice" }]
    const startMs = Date.UTC(2024, 0, 1)
    for (const isWide of [false, true])
      await play(client, { counters, policies: [policy], startMs, steps }, isWide)
  })
})

describe("a penalty", () => {
  const MINUTE = 60_000
  const QUOTA: Policy = {
    name: "quota",
    counter: "quota",
    algorithm: "sliding-window",
    limit: 1,
    windowMs: 60 * MINUTE,
    align: "epoch",
  }
  const withBlocks = (refusals: number, withinMs: number, ...forMs: readonly number[]): Policy => ({
    ...QUOTA,
    name: "trace",
    counter: "counter0",
    algorithm: "penalty",
    limit: refusals,
    windowMs: Math.max(...forMs),
    penalty: { refusals, withinMs, forMs },
  })
  /**
   * Returns a step with requests that the quota refuses, so that the penalty counts each of them. Only the first
   * request ever is granted.
   */
  const refuse = (afterMs: number, policy: Policy, times = 1): CallStep => ({
    kind: "take",
    afterMs,
    requests: Array.from({ length: times }, () =>
      [QUOTA, policy].map((each) => ({
        policy: each,
        partition: "alice",
        cost: 1,
        shadow: false,
      })),
    ),
  })
  const SINGLE = withBlocks(2, MINUTE, 5 * MINUTE)
  const THREE = withBlocks(2, 10 * MINUTE, MINUTE, 2 * MINUTE, 3 * MINUTE)
  const TWO = withBlocks(2, 10 * MINUTE, MINUTE, 2 * MINUTE)
  const SLOW = withBlocks(3, 10 * MINUTE, MINUTE, 2 * MINUTE, 3 * MINUTE)
  const HASTY = withBlocks(3, MINUTE, MINUTE, 2 * MINUTE, 3 * MINUTE)

  it.each<{
    readonly what: string
    readonly policies: readonly Policy[]
    readonly steps: readonly CallStep[]
  }>([
    {
      what: "has no steps if all its blocks have the same length",
      policies: [SINGLE],
      steps: [refuse(0, SINGLE, 3), refuse(5 * MINUTE, SINGLE), refuse(0, SINGLE)],
    },
    {
      what: "stays on the highest remaining step after the number of steps is reduced",
      policies: [THREE, TWO],
      steps: [
        refuse(0, THREE, 3),
        refuse(MINUTE, THREE, 2),
        refuse(2 * MINUTE, THREE, 2),
        refuse(3 * MINUTE, TWO, 2),
        refuse(MINUTE, TWO),
      ],
    },
    {
      what: "does not advance a step if the clock is set back to before the latest refusal",
      policies: [SLOW, HASTY],
      steps: [refuse(0, SLOW, 4), refuse(MINUTE, SLOW), refuse(5 * MINUTE, SLOW), refuse(-3 * MINUTE, HASTY)],
    },
  ])("$what", async ({ policies, steps }) => {
    const counters = policies.slice(0, 1).map((policy) => ({ policy, partition: "alice" }))
    await play(client, { counters, policies, startMs: Date.UTC(2024, 0, 1), steps }, true)
  })
})

describe("the Redis store", () => {
  const POLICY: Policy = {
    name: "trace",
    counter: "counter0",
    algorithm: "sliding-log",
    limit: 10,
    windowMs: 60_000,
    align: "epoch",
  }
  const EXTRA: Policy = { ...POLICY, algorithm: "sliding-window-strict", buckets: 2, extra: 5 }
  const FIRST_HIT: Policy = { ...POLICY, algorithm: "fixed-window", align: "first-hit" }
  const REFILLED: Policy = { ...POLICY, algorithm: "token-bucket", refill: "periodic", burst: 10 }
  const NO_REFILL: Policy = { ...REFILLED, limit: 0 }
  const take = (afterMs: number, cost: number, policy = POLICY): CallStep => ({
    kind: "take",
    afterMs,
    requests: [[{ policy, partition: "alice", cost, shadow: false }]],
  })
  const charge: CallStep = { kind: "refund", afterMs: 10, nths: [0], more: -3, moved: false }

  it.each<{
    readonly what: string
    readonly policies: readonly Policy[]
    readonly steps: readonly CallStep[]
  }>([
    {
      what: "charges a log for a request of 0 units that came after its latest entry",
      policies: [POLICY],
      steps: [take(0, 1), take(10, 0), charge, take(10, 6), take(10, 1)],
    },
    {
      what: "returns every part of a strict window whose extra units are in use",
      policies: [EXTRA],
      steps: [take(0, 6, EXTRA), take(40_000, 6, EXTRA), take(1_000, 1, EXTRA)],
    },
    {
      what: "keeps the start of a window that the first hit began when the clock goes back within it",
      policies: [FIRST_HIT],
      steps: [take(30_000, 4, FIRST_HIT), take(-10_000, 1, FIRST_HIT), take(0, 6, FIRST_HIT)],
    },
    {
      what: "keeps a bucket for one window after its limit becomes 0 and the clock is set back",
      policies: [REFILLED, NO_REFILL],
      steps: [take(0, 4, REFILLED), take(-200_000, 1, NO_REFILL), take(1_000, 1, NO_REFILL)],
    },
  ])("$what", async ({ policies, steps }) => {
    const counters = policies.slice(0, 1).map((policy) => ({ policy, partition: "alice" }))
    const startMs = Date.UTC(2024, 0, 1)
    for (const isWide of [false, true]) await play(client, { counters, policies, startMs, steps }, isWide)
  })
})

describe("counts that are packed in digits", () => {
  const MOST = Number.MAX_SAFE_INTEGER
  const LOG: Policy = {
    name: "trace",
    counter: "counter0",
    algorithm: "sliding-log",
    limit: 1_000_000,
    windowMs: 240_000,
    align: "epoch",
  }
  const PARTS: Policy = { ...LOG, algorithm: "sliding-window", buckets: 4 }
  /** The limit of this policy fits in the hash of a strict window. */
  const STRICT: Policy = { ...PARTS, algorithm: "sliding-window-strict", limit: 2 ** 17 - 1 }
  const takeEach = (policy: Policy, afterMs: number, costs: readonly number[]): readonly CallStep[] =>
    costs.map((cost) => ({
      kind: "take",
      afterMs,
      requests: [[{ policy, partition: "alice", cost, shadow: false }]],
    }))
  /** Takes nearly as many units as can be counted exactly, and then refunds two units twice. */
  const refundOfMost = (policy: Policy) => {
    const vast = { ...policy, limit: MOST - 1 }
    const two: CallStep = { kind: "refund", afterMs: 60_000, nths: [0], more: 4 - MOST, moved: false }
    const look = takeEach(vast, 0, [0]).map((step) => ({ ...step, kind: "peek" }) as CallStep)
    return { policy: vast, steps: [...takeEach(vast, 0, [MOST - 2]), two, { ...two, afterMs: 0 }, ...look] }
  }
  /** Numbers of units around 64, 4,096 and 262,144, at which a base-64 number gets another digit. */
  const widening = [
    [1, 63, 1, 1, 1, 1, 1],
    [1, 64, 1, 1, 1, 1, 1],
    [64, 63, 64, 0, 1, 4_095, 1],
    [4_096, 1, 1, 1, 1, 1, 1],
    [1, 4_096, 0, 0, 1, 262_143, 262_144, 1, 1, 1, 1, 1],
  ]

  it.each<{ readonly what: string; readonly policy: Policy; readonly steps: readonly CallStep[] }>([
    { what: "are refunded to the exact unit in a log", ...refundOfMost(LOG) },
    { what: "are refunded to the exact unit in a strict window", ...refundOfMost(STRICT) },
    { what: "are refunded to the exact unit in sub-windows", ...refundOfMost(PARTS) },
    ...[PARTS, STRICT].flatMap((policy) =>
      widening
        .filter((costs) => Math.max(...costs) < policy.limit)
        .map((costs) => ({
          what: `use as many digits as the largest part of a ${policy.algorithm} needs for the costs ${costs}`,
          policy,
          steps: takeEach(policy, 60_000, costs),
        })),
    ),
    {
      what: "are removed from a log together with every expired entry",
      policy: LOG,
      steps: [...takeEach(LOG, 10_000, [1, 1, 1]), ...takeEach(LOG, 234_000, [1])],
    },
  ])("$what", async ({ policy, steps }) => {
    const counters = [{ policy, partition: "alice" }]
    const startMs = Date.UTC(2024, 0, 1)
    for (const isWide of [false, true])
      await play(client, { counters, policies: [policy], startMs, steps }, isWide)
  })
})
