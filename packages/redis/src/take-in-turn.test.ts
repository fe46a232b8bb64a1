import { type MemoryStore, memoryStore, StoreUnavailableError } from "@sluice/core"
import type { Check, Policy, Refund, StoreResult } from "@sluice/core/stores"
import { type ManualClock, manualClock } from "@sluice/core/testing"
import { describe, expect, it } from "vitest"
import type { RedisRequest } from "./scripts/script-input.ts"
import { takeInTurn } from "./take-in-turn.ts"

const MINUTE = 60_000
/** The beginning of a window. */
const EDGE_MS = Date.UTC(2024, 0, 1)

/** Returns a policy whose counter is in a slot. The counter's name begins with the slot's name. */
function policy(counter: string, limit = 10): Policy {
  return { name: counter, counter, algorithm: "fixed-window", align: "epoch", limit, windowMs: MINUTE }
}

function check(counter: string, cost = 1, more: Partial<Check> = {}): Check {
  return { policy: policy(counter), partition: "ann", cost, shadow: false, ...more }
}

/** Returns a check of a whole-service counter. */
function shared(counter: string, cost = 1): Check {
  return check(counter, cost, { partition: "" })
}

/** Creates servers, each with its own clock and counters, and records the calls to them. */
function cluster(...names: readonly string[]) {
  const servers = new Map<string, { readonly clock: ManualClock; readonly store: MemoryStore }>()
  for (const name of names) {
    const clock = manualClock(EDGE_MS + 1_000)
    servers.set(name, { clock, store: memoryStore({ clock }) })
  }
  const server = (counter: string) => {
    const found = servers.get(counter.slice(0, 1))
    if (found === undefined) throw new Error(`There is no server for ${counter}.`)
    return found
  }
  const parts: string[] = []
  const returned: Refund[] = []
  /** Functions that servers call instead of taking units. */
  const instead = new Map<string, () => StoreResult>()
  const slots = {
    async take({ checks, keys, isPart }: RedisRequest) {
      const counters = checks.map((one) => one.policy.counter)
      parts.push(counters.join(" "))
      expect([keys, isPart]).toEqual([checks.map(keyOf), true])
      const name = counters[0] as string
      return instead.get(name.slice(0, 1))?.() ?? server(name).store.take(checks)
    },
    async refund(refunds: readonly Refund[]) {
      returned.push(...refunds)
      for (const refund of refunds) server(refund.policy.counter).store.refund([refund])
    },
  }
  const take = async (...checks: readonly Check[]) => {
    return takeInTurn({ checks, keys: checks.map(keyOf) }, (key) => key.slice(0, 1), slots)
  }
  const clockOf = (name: string) => server(name).clock
  const inUse = (...checks: readonly Check[]) =>
    checks.map((one) => server(one.policy.counter).store.read([one]).counters[0]?.state.current)
  return { parts, returned, instead, slots, take, clockOf, inUse }
}

function keyOf({ policy: { counter }, partition }: Check): string {
  return `${counter} ${partition}`
}

function takenOf({ checks }: StoreResult): unknown {
  return checks.map((one) => one && [one.state.current, one.taken])
}

describe("a request whose checks are in several slots", () => {
  it("takes units from each slot, and returns the results in the order of the checks", async () => {
    const { parts, returned, take, inUse } = cluster("a", "b")
    const checks = [check("b1", 1), check("a1", 2), check("b2", 3), check("a2", 4)]
    const answer = await take(...checks)
    expect([answer.granted, takenOf(answer)]).toEqual([
      true,
      [
        [1, 1],
        [2, 2],
        [3, 3],
        [4, 4],
      ],
    ])
    // There is one call per slot, which decides all checks of that slot.
    expect([parts, returned, inUse(...checks)]).toEqual([["b1 b2", "a1 a2"], [], [1, 2, 3, 4]])
  })

  it("a request without checks is granted without a call", async () => {
    const { parts, take } = cluster()
    expect([await take(), parts]).toEqual([{ nowMs: 0, granted: true, checks: [] }, []])
  })

  it.each([
    ["b c a", [shared("a"), check("b"), check("c")]],
    ["a c b", [check("a"), shared("b"), check("c")]],
    ["a b c", [check("a"), check("b"), shared("c")]],
    ["b a a2", [check("a"), shared("a2"), check("b")]],
    ["a c b", [shared("c"), shared("b"), check("a")]],
  ])("takes units from the slot of a whole-service counter last: %s", async (order, checks) => {
    const { parts, take } = cluster("a", "b", "c")
    await take(...checks)
    expect(parts.join(" ")).toBe(order)
  })

  it("refunds earlier slots when a later slot refuses, and calls no further slots", async () => {
    const { parts, returned, take, inUse } = cluster("a", "b", "c")
    const [first, second, third] = [check("a", 3), check("b", 5), check("c", 1)]
    await take(second)
    const earlier = parts.splice(0)
    const { granted, checks } = await take(first, { ...second, cost: 6 }, third)
    // The state of the first check is omitted, because the refund has changed its counter.
    expect([granted, checks.map((one) => one && [one.state.current, one.taken])]).toEqual([
      false,
      [undefined, [5, 0], undefined],
    ])
    expect([earlier, parts, returned.map(({ units }) => units)]).toEqual([["b"], ["a", "b"], [3]])
    expect(inUse(first, second, third)).toEqual([0, 5, 0])
  })

  it("refunds nothing if the first slot refuses", async () => {
    const { parts, returned, take } = cluster("a", "b")
    const answer = await take(check("a", 11), check("b"))
    expect([answer.granted, takenOf(answer)]).toEqual([false, [[0, 0], undefined]])
    expect([parts, returned]).toEqual([["a"], []])
  })

  it("is refused without the states of refunded counters, even for their shadow checks", async () => {
    const { take } = cluster("a", "b")
    const shadow = check("a", 9, { shadow: true })
    const answer = await take(check("a", 3), shadow, check("a2", 0), check("b", 11))
    expect([answer.granted, takenOf(answer)]).toEqual([false, [undefined, undefined, [0, 0], [0, 0]]])
  })

  it("refunds earlier slots when a later slot fails, and is rejected with that slot's error", async () => {
    const { returned, instead, take, inUse } = cluster("a", "b")
    const lost = new StoreUnavailableError("The connection is lost.", { kind: "unavailable" })
    instead.set("b", () => {
      throw lost
    })
    await expect(take(check("a", 3), check("b"))).rejects.toBe(lost)
    expect([returned.map(({ units }) => units), inUse(check("a"))]).toEqual([[3], [0]])
    // There is nothing to refund.
    await expect(take(check("b"), check("a"))).rejects.toBe(lost)
    expect(returned).toHaveLength(1)
  })

  it.each([
    ["behind", ["a", "b"]],
    ["ahead", ["b", "a"]],
  ])("is decided at the latest server time if the first server's clock is %s", async (_, order) => {
    const { returned, slots, take, clockOf, inUse } = cluster("a", "b")
    clockOf("a").set(EDGE_MS - 1)
    clockOf("b").set(EDGE_MS + 2)
    const before = { startMs: EDGE_MS - MINUTE, current: 3, previous: 0 }
    const inA = { state: { startMs: EDGE_MS, current: 0, previous: 0 }, taken: 3, after: before }
    // This server decided at the latest time, so its state needs no update.
    const inB = { state: { startMs: EDGE_MS, current: 5, previous: 0 }, taken: 5 }
    const [one, other] = [check("a", 3), check("b", 5)]
    const answer = await take(...order.map((name) => (name === "a" ? one : other)))
    const checks = order.map((name) => (name === "a" ? inA : inB))
    expect(answer).toStrictEqual({ nowMs: EDGE_MS + 2, granted: true, checks })
    // A refund changes the window from which the units were taken.
    await slots.refund([{ policy: one.policy, partition: one.partition, units: 3, after: before }])
    expect([returned.length, inUse(one, other)]).toEqual([1, [0, 5]])
  })

  it("is refused with a cached count's age, even if the count is moved to a later time", async () => {
    const { take, clockOf, instead } = cluster("a", "b")
    clockOf("a").set(EDGE_MS + 7)
    const state = { startMs: EDGE_MS - MINUTE, current: 10, previous: 0 }
    instead.set("b", () => ({
      ...{ nowMs: EDGE_MS - 1, granted: false, isRemembered: true },
      checks: [{ state, taken: 0, ageMs: 40 }],
    }))
    const answer = await take(check("a", 3), check("b"))
    expect([answer.nowMs, answer.checks.map((one) => one?.ageMs)]).toEqual([EDGE_MS + 7, [undefined, 40]])
  })
})
