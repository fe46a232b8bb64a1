import { peekStore } from "@sluice/core/stores"
import type { Redis } from "ioredis"
import { expect } from "vitest"
import type { CounterState } from "../../packages/core/src/algorithms/algorithm.ts"
import { algorithmOf } from "../../packages/core/src/algorithms/kinds.ts"
import { strictWindow } from "../../packages/core/src/algorithms/strict-window.ts"
import { bucketMsOf, bucketsOf } from "../../packages/core/src/algorithms/sub-windows.ts"
import { mostCharged } from "../../packages/core/src/decision/settlement.ts"
import { LATEST_MS } from "../../packages/core/src/ground/clock.ts"
import { manualClock } from "../../packages/core/src/ground/manual-clock.ts"
import { capacityOf, ceilingOf, type Policy } from "../../packages/core/src/ground/policy.ts"
import { type MemoryStore, memoryStore } from "../../packages/core/src/stores/memory/memory-store.ts"
import type { Check, CounterKey, Refund, Store, StoreResult } from "../../packages/core/src/stores/store.ts"
import { keyNamer } from "../../packages/redis/src/key.ts"
import { RedisStore } from "../../packages/redis/src/redis-store.ts"
import { PEEK, REFUND, TAKE } from "../../packages/redis/src/scripts.ts"
import { entriesOf } from "../log-entries.ts"
import {
  type CallStep,
  type CallTrace,
  GRANTED,
  MOST_CHARGED,
  ONE_TOO_MANY,
  RENEWED,
  type Requests,
} from "./call-traces.ts"
import { KeptEnds } from "./kept-ends.ts"
import { KeysOnAClock, type SeenKey } from "./keys-on-a-clock.ts"
import { MOST_PACKED } from "./traced-policies.ts"

const EARLIEST_MS = Date.UTC(2000, 0, 1)
let made = 0

/** Loads the scripts into the server, so that each call is one command. */
export async function loadScripts(client: Redis): Promise<void> {
  for (const { text } of [TAKE, PEEK, REFUND]) await client.script("LOAD", text)
}

/**
 * Plays a trace on the memory store and on Redis, in one of the two layouts. Expects the same replies, keys and TTLs
 * after each step. The server must have loaded the scripts.
 */
export async function play(
  client: Redis,
  { counters, policies, startMs, steps }: CallTrace,
  isWide: boolean,
): Promise<void> {
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
      // Redis may delete an expired state. The twin deletes it too, because the clock may later go back to that time.
      const gone = await keys.expire()
      twin.reset(gone.map((name) => byName.get(name) as CounterKey))
      const present = new Set([...byName.keys()].filter((name) => keys.at(name) !== undefined))
      const calls = keys.calls
      ends.begin(counters)
      const touched = await compare(step, store, twin, taken, ends, policies)
      // The store sends only one call for any number of requests, because the script decides all requests of a call.
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
 * Returns how many milliseconds a clock may go back. The number of a strict window distinguishes only 511
 * sub-windows. Beyond these, a script uses the key's TTL by the server's own clock, which a test clock cannot
 * replace.
 */
function furthestBack(policies: readonly Policy[]): number {
  const strict = policies.filter(({ algorithm }) => algorithm === "sliding-window-strict")
  return Math.min(...strict.map((policy) => (500 - bucketsOf(policy)) * bucketMsOf(policy)))
}

/** Runs the step on both stores and expects equal results. Returns the counters that the step used. */
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
      const ask = (one: Store, checks: readonly Check[]) =>
        step.kind === "take" ? one.take(checks) : peekStore(one, checks)
      const answers = await Promise.all(requests.map(async (checks) => ask(store, checks)))
      const expected = requests.map((checks) => {
        const answered = ask(twin, checks) as StoreResult
        ends.looked(checks.map((check, i) => ({ ...check, taken: answered.checks[i]?.taken ?? 0 })))
        return answered
      })
      expect(alike(requests, answers)).toEqual(alike(requests, expected))
      if (step.kind === "take") taken.push(...unitsOf(requests, answers))
      return requests.flat()
    }
    case "refund": {
      if (taken.length === 0) return []
      const refunds = step.nths.map((nth) =>
        refundOf(taken[taken.length - 1 - (nth % taken.length)] as Refund, step, twin, policies),
      )
      await store.refund(refunds)
      for (const refund of refunds) {
        twin.refund([refund])
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
  { more, moved }: CallStep & { kind: "refund" },
  twin: MemoryStore,
  policies: readonly Policy[],
): Refund {
  const { policy, after } = refund
  if (more === GRANTED) {
    const units = moved ? -refund.units : refund.units
    return {
      ...refund,
      ...(policy.periods !== undefined && { policy: { ...policy, algorithm: "grant" }, units }),
    }
  }
  const added = more === RENEWED ? -2 * refund.units : more
  const units = refund.units + (added === MOST_CHARGED ? -yearOf(policy, policies) : added)
  const answer = twin.read([])
  return {
    ...refund,
    units,
    after: moved ? algorithmOf(policy).at(after, policy, answer.nowMs) : after,
  }
}

/**
 * Returns a year's quota under the counter's lowest limit. With a higher charge, the instant at which the units come
 * back could not be computed.
 */
function yearOf({ counter }: Policy, policies: readonly Policy[]): number {
  const some = policies.filter((policy) => policy.counter === counter && policy.limit > 0)
  return some.length === 0 ? 0 : Math.min(...some.map(mostCharged))
}

/** Returns the requests after replacing the costs that depend on the remaining units. */
function inUnits(requests: Requests, twin: MemoryStore): Requests {
  return requests.map((checks) =>
    checks.map((check) => {
      if (check.cost >= 0) return check
      const { policy } = check
      const answer = twin.read([{ ...check, cost: 0 }])
      const [counted] = answer.counters
      if (counted === undefined) throw new Error("the twin has told nothing")
      const used = algorithmOf(policy).used(counted.state, policy, answer.nowMs)
      const remaining = Math.max(0, ceilingOf(policy) - used)
      return { ...check, cost: check.cost === ONE_TOO_MANY ? remaining + 1 : remaining }
    }),
  )
}

/** Returns a possible refund for each granted check, including checks that take no units. */
function unitsOf(requests: Requests, answers: readonly StoreResult[]): Refund[] {
  return requests.flatMap((checks, i) =>
    checks.flatMap(({ policy, partition, cost }, j) => {
      const counted = answers[i]?.checks[j]
      if (answers[i]?.granted !== true || counted?.taken !== cost) return []
      return [{ policy, partition, units: counted.taken, after: counted.state }]
    }),
  )
}

/**
 * Returns the replies in a comparable form. Absent parts become empty. For a grant of a strict window, replaces the
 * parts by the durations that are computed from them. A log is compared by its entries, because two logs with the
 * same entries may use different numbers of digits.
 */
function alike(requests: Requests, answers: readonly StoreResult[]): unknown {
  return answers.map((answer, i) => ({
    ...answer,
    checks: answer.checks.map((counted, j) => {
      if (counted === undefined) return undefined
      const { policy } = (requests[i] as readonly Check[])[j] as Check
      const state = meant(counted.state, policy)
      // Ignore the wait, which the twin computes but the Redis store does not.
      const { retryAfterMs: _, ...others } = counted
      if (counted.taken === 0 || policy.algorithm !== "sliding-window-strict") return { ...others, state }
      const capacity = capacityOf(policy)
      const remaining = Math.max(0, capacity - strictWindow.used(state, policy, answer.nowMs))
      const hard = { ...policy, extra: 0 }
      const nextUnitAfterMs =
        remaining >= capacity ? 0 : strictWindow.retryAfterMs(state, hard, remaining + 1, answer.nowMs)
      const resetAfterMs = strictWindow.resetAfterMs(state, policy, answer.nowMs)
      return { ...others, state: { ...state, parts: { nextUnitAfterMs, resetAfterMs } } }
    }),
  }))
}

function meant(state: CounterState, policy: Policy): CounterState {
  if (policy.algorithm !== "sliding-log") return { parts: "", ...state }
  return { ...state, parts: JSON.stringify(entriesOf(state, policy)) }
}

/** Expects that the key exists exactly as long as its state matters, and that its value has the right layout. */
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
  const { algorithm, align, periods, buckets } = policy
  if (algorithm === "sliding-window-strict" && !isWide) {
    const fitsHash = Math.max(state.current, state.previous) < 2 ** 17
    const ceilings = ends.policiesOf(counter).map(ceilingOf)
    if (fitsHash && ceilings.every((ceiling) => ceiling < 2 ** 17)) expect(seen.value).toMatch(HASH)
    else if (!fitsHash || ceilings.every((ceiling) => ceiling >= 2 ** 17)) expect(seen.value).toMatch(TEXT)
    // The key was written under one of the two limits, so either layout is correct.
    else expect(seen.value).toMatch(seen.value.startsWith("w") ? TEXT : HASH)
    return
  }
  const isPlain = buckets === undefined && ["sliding-window", "fixed-window", "in-flight"].includes(algorithm)
  const isSmall = state.current <= MOST_PACKED && state.previous <= 2 * MOST_PACKED
  const fits = isPlain && align === "epoch" && periods === undefined && isSmall
  expect(seen.value).toMatch(fits && !isWide ? /^\d+$/ : TEXT)
}

const TEXT = /^w:\d+:\d+:\d+(:[0-o]+)?$/
const HASH = /^{("\d+":"[0-o]{1,63}",)*"n":"\d+"}$/
