import fc from "fast-check"
import { Redis } from "ioredis"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import type { CounterState } from "../../packages/core/src/algorithms/algorithm.ts"
import { algorithmOf } from "../../packages/core/src/algorithms/by-name.ts"
import { strictWindow } from "../../packages/core/src/algorithms/strict-window.ts"
import { bucketMsOf, bucketsOf } from "../../packages/core/src/algorithms/sub-windows.ts"
import { LATEST_MS, manualClock } from "../../packages/core/src/clock.ts"
import { mostCharged } from "../../packages/core/src/limiter/settlement.ts"
import { capacityOf, ceilingOf, type Policy } from "../../packages/core/src/policy.ts"
import { type MemoryStore, memoryStore } from "../../packages/core/src/stores/memory/memory-store.ts"
import { keyNamer } from "../../packages/core/src/stores/redis/key.ts"
import { RedisStore } from "../../packages/core/src/stores/redis/redis-store.ts"
import { GIVE_BACK, PEEK, TAKE } from "../../packages/core/src/stores/redis/scripts.ts"
import type { Answer, Check, CounterKey, Refund, Store } from "../../packages/core/src/stores/store.ts"
import { entriesOf } from "../log-entries.ts"
import { type RedisServer, startRedis } from "../servers/redis-server.ts"
import {
  ALL_THAT_REMAINS,
  type CallStep,
  type CallTrace,
  callTraces,
  MOST_CHARGED,
  ONE_TOO_MANY,
  type Requests,
} from "./call-traces.ts"
import { KeptEnds } from "./kept-ends.ts"
import { KeysOnAClock, type SeenKey } from "./keys-on-a-clock.ts"
import { MOST_PACKED } from "./traced-policies.ts"

let server: RedisServer
let client: Redis
let made = 0

beforeAll(async () => {
  server = await startRedis()
  client = new Redis(server.port, server.host)
  for (const { text } of [TAKE, PEEK, GIVE_BACK]) await client.script("LOAD", text)
})
afterAll(async () => {
  client?.disconnect()
  await server?.stop()
})

const EARLIEST_MS = Date.UTC(2000, 0, 1)
/** Together: 1,000 traces in each layout. Several are played at once, so that none waits for the other's replies. */
const SEEDS = [7_001, 7_002, 7_003, 7_004]
const TRACES_A_SEED = 250

describe.concurrent.each([
  { layout: "packed", isWide: false },
  { layout: "wide", isWide: true },
])("the scripts in the $layout layout", { timeout: 180_000 }, ({ isWide }) => {
  it.each(SEEDS)("agree with the memory store in every answer, key and time to live (%i)", async (seed) => {
    await fc.assert(
      fc.asyncProperty(callTraces(), (trace) => play(trace, isWide)),
      { seed, numRuns: TRACES_A_SEED },
    )
  })
})

describe.each<{ readonly what: string; readonly kind: Partial<Policy> }>([
  { what: "a sliding window", kind: {} },
  { what: "a sliding window in parts", kind: { buckets: 2 } },
  { what: "a strict window", kind: { algorithm: "sliding-window-strict", buckets: 2 } },
])("the key of $what, all of whose present units have been given back,", ({ kind }) => {
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
  const giveBack: CallStep = { kind: "giveBack", afterMs: 0, nths: [0], more: 0, moved: false }

  it.each([
    { taken: "once", again: take(10, 2) },
    { taken: "by several", again: take(10, 2, 2, 2) },
    { taken: "by some of several", again: take(10, 4, 4, 4, 4) },
    { taken: "by nobody whom there is room for", again: take(10, 9) },
    { taken: "together with those of another key", again: takeBoth(10, 2) },
  ])("lives as long as units that are taken then $taken", async ({ again }) => {
    const steps = [take(0, 5), take(1_000, 1), giveBack, again, take(995, 1), take(500, 1)]
    await play(
      { counters: [counter, other], policies: [policy], startMs: Date.UTC(2024, 0, 1), steps },
      false,
    )
  })
})

describe("a request of several checks that begins a window", () => {
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
      what: "is refused where the window before leaves no room for one of them",
      steps: [take(1_001, [other, 1], [counter, 5]), take(500, [other, 1], [counter, 5])],
    },
    {
      what: "writes nothing for the one of them that asks for nothing",
      steps: [take(500, [counter, 0], [other, 1]), take(2_600, [counter, 0], [other, 1])],
    },
    {
      what: "takes the units of both where they are of one counter",
      steps: [take(1_600, [counter, 2], [counter, 3]), take(10, [counter, 1])],
    },
    {
      what: "is refused where there is room for each of one counter, but not for both",
      steps: [take(1_600, [counter, 4], [counter, 3]), take(10, [counter, 1])],
    },
  ])("$what", async ({ steps }) => {
    const counters = [counter, other]
    const startMs = Date.UTC(2024, 0, 1)
    await play({ counters, policies: [policy], startMs, steps: [take(0, [counter, 10]), ...steps] }, false)
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
  ])("is refused and granted, to the unit: $limit in $windowMs ms", async ({ limit, windowMs }) => {
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
      { counters: [counter], policies: [counter.policy], startMs: Date.UTC(2024, 0, 1), steps },
      false,
    )
  })
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
  const giveBack = (afterMs: number, more: number): CallStep => ({
    kind: "giveBack",
    afterMs,
    nths: [0],
    more,
    moved: false,
  })
  const FIRST_HIT: Policy = { ...POLICY, algorithm: "fixed-window", align: "first-hit", limit: 10 }

  it.each<{ readonly what: string; readonly policy: Policy; readonly steps: readonly CallStep[] }>([
    {
      what: "is nothing on a counter that holds more than one number can tell",
      policy: POLICY,
      steps: [take(0, POLICY.limit), take(119_000, 8e15), giveBack(0, -8e15 - 5), take(1_000, 1)],
    },
    {
      what: "counts from the first request of a window, although its units have been given back",
      policy: FIRST_HIT,
      steps: [take(0, 2, FIRST_HIT), giveBack(0, 0), giveBack(300, -4), take(0, 1, FIRST_HIT)],
    },
  ])("$what", async ({ policy, steps }) => {
    const counters = [{ policy, partition: "alice" }]
    const startMs = Date.UTC(2024, 0, 1)
    for (const isWide of [false, true]) await play({ counters, policies: [policy], startMs, steps }, isWide)
  })
})

/** Plays a trace on both stores, and compares all that can be seen after each step. */
async function play({ counters, policies, startMs, steps }: CallTrace, isWide: boolean): Promise<void> {
  const clock = manualClock(startMs)
  const prefix = `${made++}:`
  const byName = new Map(counters.map((counter) => [keyNamer(prefix)(counter), counter]))
  const keys = new KeysOnAClock(client, clock, [...byName.keys()])
  const { commands } = keys
  const store = new RedisStore({ commands, prefix, denyCacheMs: 0, timeoutMs: 10_000, clock, isWide })
  const twin = memoryStore({ clock })
  const ends = new KeptEnds(keys, clock, twin, keyNamer(prefix), policies)
  const taken: Refund[] = []
  const furthestBackMs = isWide ? Number.POSITIVE_INFINITY : furthestBack(policies)
  let latestMs = startMs
  try {
    for (const step of steps) {
      const toMs = Math.max(clock.now() + step.afterMs, latestMs - furthestBackMs)
      latestMs = Math.max(latestMs, toMs)
      if (toMs > EARLIEST_MS && toMs < LATEST_MS) clock.set(toMs)
      // A state that has passed may be forgotten: then both forget it, should the clock go back to it later.
      const gone = await keys.expire()
      twin.reset(gone.map((name) => byName.get(name) as CounterKey))
      const present = new Set([...byName.keys()].filter((name) => keys.at(name) !== undefined))
      const calls = keys.calls
      ends.begin(counters)
      const touched = await compare(step, store, twin, taken, ends, policies)
      // However many requests: it is the script that decides between them.
      if (step.kind === "take") expect(keys.calls).toBe(calls + 1)
      for (const [name, counter] of byName) {
        const isTouched = touched.some((one) => keyNamer(prefix)(one) === name)
        if (isTouched && step.kind !== "reset") expectKept(keys, name, counter, ends, isWide)
        else expect([name, keys.at(name) !== undefined]).toEqual([name, present.has(name) && !isTouched])
        if (isTouched || !present.has(name)) continue
        const seen = keys.at(name) as SeenKey
        expect(seen.isWritten).toBe(false)
        keys.pin(name, seen.expiresMs[1])
      }
    }
  } finally {
    store.close()
    twin.close()
  }
}

/**
 * Milliseconds that a clock may go back. The number of a strict window tells 511 sub-windows apart, and beyond that it is a key's
 * time to live by the server's own clock that tells, which a clock of the test's cannot stand for.
 */
function furthestBack(policies: readonly Policy[]): number {
  const strict = policies.filter(({ algorithm }) => algorithm === "sliding-window-strict")
  return Math.min(...strict.map((policy) => (500 - bucketsOf(policy)) * bucketMsOf(policy)))
}

/** Does the same with both stores, expects the same of both, and yields the counters that were looked at. */
async function compare(
  step: CallStep,
  store: Store,
  twin: MemoryStore,
  taken: Refund[],
  ends: KeptEnds,
  policies: readonly Policy[],
): Promise<readonly CounterKey[]> {
  switch (step.kind) {
    case "take":
    case "peek": {
      const requests = inUnits(step.requests, twin)
      const answers = await store[step.kind](requests)
      const expected = requests.flatMap((checks) => {
        const answered = twin[step.kind]([checks])
        ends.looked(checks.map((check, i) => ({ ...check, taken: answered[0]?.checks[i]?.taken ?? 0 })))
        return answered
      })
      expect(alike(requests, answers)).toEqual(alike(requests, expected))
      if (step.kind === "take") taken.push(...unitsOf(requests, answers))
      return requests.flat()
    }
    case "giveBack": {
      if (taken.length === 0) return []
      const refunds = step.nths.map((nth) =>
        refundOf(taken[taken.length - 1 - (nth % taken.length)] as Refund, step, twin, policies),
      )
      await store.giveBack(refunds)
      for (const refund of refunds) {
        twin.giveBack([refund])
        ends.looked([{ ...refund, taken: 0 }])
      }
      return refunds
    }
    case "reset":
      await store.reset(step.keys)
      twin.reset(step.keys)
      return step.keys
  }
}

function refundOf(
  refund: Refund,
  { more, moved }: CallStep & { kind: "giveBack" },
  twin: MemoryStore,
  policies: readonly Policy[],
): Refund {
  const { policy, after } = refund
  const units = refund.units + (more === MOST_CHARGED ? -yearOf(policy, policies) : more)
  const [answer] = twin.peek([[]])
  return {
    ...refund,
    units,
    after: moved ? algorithmOf(policy).at(after, policy, answer?.nowMs ?? Number.NaN) : after,
  }
}

/** A year's quota, by the lowest limit of the counter: what is charged has to come back before time ends. */
function yearOf({ counter }: Policy, policies: readonly Policy[]): number {
  const some = policies.filter((policy) => policy.counter === counter && policy.limit > 0)
  return some.length === 0 ? 0 : Math.min(...some.map(mostCharged))
}

/** The requests with the costs that depend on what there is. */
function inUnits(requests: Requests, twin: MemoryStore): Requests {
  return requests.map((checks) =>
    checks.map((check) => {
      if (check.cost >= 0) return check
      const { policy } = check
      const [answer] = twin.peek([[{ ...check, cost: 0 }]])
      const [counted] = answer?.checks ?? []
      if (answer === undefined || counted === undefined) throw new Error("the twin has told nothing")
      const used = algorithmOf(policy).used(counted.state, policy, answer.nowMs)
      const remaining = Math.max(0, ceilingOf(policy) - used)
      return { ...check, cost: check.cost === ONE_TOO_MANY ? remaining + 1 : remaining }
    }),
  )
}

/** What may be given back of each check, or charged on top: of one that asked for nothing, too. */
function unitsOf(requests: Requests, answers: readonly Answer[]): Refund[] {
  return requests.flatMap((checks, i) =>
    checks.flatMap(({ policy, partition, cost }, j) => {
      const counted = answers[i]?.checks[j]
      if (answers[i]?.granted !== true || counted?.taken !== cost) return []
      return [{ policy, partition, units: counted.taken, after: counted.state }]
    }),
  )
}

/**
 * The answers with what may be absent: parts that are empty, and those of a strict window that has granted, in place of which
 * stands what is told of them. A log is what is in it: its number of digits means nothing.
 */
function alike(requests: Requests, answers: readonly Answer[]): unknown {
  return answers.map((answer, i) => ({
    ...answer,
    checks: answer.checks.map((counted, j) => {
      if (counted === undefined) return undefined
      const { policy } = (requests[i] as readonly Check[])[j] as Check
      const state = meant(counted.state, policy)
      if (counted.taken === 0 || policy.algorithm !== "sliding-window-strict") return { ...counted, state }
      const capacity = capacityOf(policy)
      const remaining = Math.max(0, capacity - strictWindow.used(state, policy, answer.nowMs))
      const hard = { ...policy, extra: 0 }
      const nextUnitAfterMs =
        remaining >= capacity ? 0 : strictWindow.retryAfterMs(state, hard, remaining + 1, answer.nowMs)
      const resetAfterMs = strictWindow.resetAfterMs(state, policy, answer.nowMs)
      return { ...counted, state: { ...state, parts: { nextUnitAfterMs, resetAfterMs } } }
    }),
  }))
}

function meant(state: CounterState, policy: Policy): CounterState {
  if (policy.algorithm !== "sliding-log") return { parts: "", ...state }
  return { ...state, parts: JSON.stringify(entriesOf(state, policy)) }
}

/** Expects the key to live exactly as long as the state means anything, in the layout that is written. */
function expectKept(
  keys: KeysOnAClock,
  name: string,
  counter: CounterKey,
  ends: KeptEnds,
  isWide: boolean,
): void {
  const { policy, state, atMs } = ends.expectEnd(counter)
  const seen = keys.at(name)
  if (atMs === undefined || seen?.isWritten !== true) return
  const { algorithm, align, buckets } = policy
  if (algorithm === "sliding-window-strict" && !isWide) {
    const fitsHash = Math.max(state.current, state.previous) < 2 ** 17
    const ceilings = ends.policiesOf(counter).map(ceilingOf)
    if (fitsHash && ceilings.every((ceiling) => ceiling < 2 ** 17)) expect(seen.value).toMatch(HASH)
    else if (!fitsHash || ceilings.every((ceiling) => ceiling >= 2 ** 17)) expect(seen.value).toMatch(TEXT)
    // Written under one limit or the other.
    else expect(seen.value).toMatch(seen.value.startsWith("w") ? TEXT : HASH)
    return
  }
  const isPlain = buckets === undefined && (algorithm === "sliding-window" || algorithm === "fixed-window")
  const isSmall = state.current <= MOST_PACKED && state.previous <= 2 * MOST_PACKED
  const fits = isPlain && align === "epoch" && isSmall
  expect(seen.value).toMatch(fits && !isWide ? /^\d+$/ : TEXT)
}

const TEXT = /^w:\d+:\d+:\d+(:[0-o]+)?$/
const HASH = /^{("\d+":"[0-o]{1,63}",)*"n":"\d+"}$/
