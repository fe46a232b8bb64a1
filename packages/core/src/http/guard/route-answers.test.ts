import { setImmediate as nextTurn } from "node:timers/promises"
import { describe, expect, it } from "vitest"
import { manualClock } from "../../ground/manual-clock.ts"
import { memoryStore } from "../../stores/memory/memory-store.ts"
import { createGuard } from "./create-guard.ts"
import type { Guard, GuardOptions } from "./guard.ts"

const FACTS = { method: "GET", url: "/", headers: {}, remoteAddress: "192.0.2.1" }
const RULE = { limit: 1, window: "1 minute" }

/** Creates a guard as an adapter does, at startup and before any request. */
async function mount(options: object): Promise<Guard<object>> {
  const guard = createGuard<object>({ clock: manualClock(), ...options } as GuardOptions<object>)
  await nextTurn()
  return guard
}

/** Returns the response to a client that the guard refuses, and the names of the headers that are set first. */
async function answered(guard: Guard<object>): Promise<unknown> {
  await guard.check(FACTS, {})
  const request = {}
  const outcome = await guard.check(FACTS, request)
  const answer = await guard.answer(outcome, request, {})
  return [answer?.body.slice(0, 7), outcome.headers.map(([name]) => name).includes("Retry-After")]
}

const says = (body: string) => () => ({ status: 402, headers: [], body })

describe("the onRejected of a route", () => {
  it.each<[string, object]>([
    ["is called if the limiter has no onRejected", {}],
    ["is called instead of the limiter's onRejected", { onRejected: says("limiter") }],
  ])("%s", async (_what, options) => {
    const guard = await mount({ ...RULE, ...options })
    const route = guard.forRoute({ ...RULE, onRejected: says("route") }, { label: "a" })
    const other = guard.forRoute(RULE, { label: "b" })
    await nextTurn()
    expect([route.asksApp, await answered(route)]).toEqual([true, ["route", true]])
    const standard = "onRejected" in options ? ["limiter", true] : ['{"type"', false]
    expect([await answered(other), await answered(guard)]).toEqual([standard, standard])
  })

  it("may differ within a group, whose name is free after all its routes have closed", async () => {
    const store = memoryStore({ clock: manualClock() })
    const guard = await mount({ ...RULE, store, name: "all" })
    const written = { limit: 3, window: "1 minute", group: "g" }
    const [first, second] = [says("first"), says("second")]
    const a = guard.forRoute({ ...written, onRejected: first }, { label: "a" })
    const b = guard.forRoute({ ...written, onRejected: second }, { label: "b" })
    expect(guard.forRoute({ ...written, onRejected: first }, { label: "c" })).toBe(a)
    await nextTurn()
    const left = async (each: Guard<object>) => (await each.check(FACTS, {})).decision.remaining
    expect([await left(a), await left(b)]).toEqual([2, 1])
    expect([await answered(a), await answered(b)]).toEqual([
      ["first", true],
      ["second", true],
    ])
    const count = () => createGuard({ ...RULE, store, name: "g" })
    await a.close()
    expect(count).toThrow('another limiter already counts rule "g"')
    await b.close()
    expect(count).not.toThrow()
  })
})

describe("a guard that checks only its own rule", () => {
  const rules = [{ name: "all", field: "service", limit: 9, window: "1 minute" }]
  const alone = { label: "a", isAlone: true }
  const counted = async (guard: Guard<object>, request: object) => {
    const outcome = await guard.check(FACTS, request)
    return outcome.headers.find(([name]) => name === "RateLimit-Policy")?.[1] ?? ""
  }

  it("leaves the limiter's other rules to a mount before or after it", async () => {
    const guard = await mount({ rules })
    const own = guard.forRoute({ ...RULE, limit: 9 }, alone)
    await nextTurn()
    const [request, other] = [{}, {}]
    expect(await counted(own, request)).toBe('"a";q=9;w=60')
    expect(await counted(guard, request)).toBe('"a";q=9;w=60, "all";q=9;w=60')
    expect(await counted(guard, other)).toBe('"all";q=9;w=60')
    expect(await counted(own, other)).toBe('"all";q=9;w=60, "a";q=9;w=60')
    const { checks } = await guard.limiter.peek(FACTS, { rules: ["all", "a"] })
    expect(checks.map(({ remaining }) => remaining)).toEqual([7, 7])
  })

  it("does not refund the units of earlier mounts if it refuses", async () => {
    const guard = await mount({ rules })
    const other = await mount({ ...RULE, limit: 9, name: "other" })
    const own = guard.forRoute(RULE, alone)
    await nextTurn()
    for (const left of [8, 7]) {
      const request = {}
      for (const each of [guard, other, own]) await each.check(FACTS, request)
      await nextTurn()
      expect((await guard.limiter.peek(FACTS)).remaining).toBe(left)
    }
    expect((await other.limiter.peek(FACTS)).remaining).toBe(7)
  })

  it("uses the counter of a group, but does not count a request that another mount has counted", async () => {
    const guard = await mount({ rules })
    const written = { limit: 9, window: "1 minute", group: "g" }
    const [route, own] = [guard.forRoute(written, { label: "r" }), guard.forRoute(written, alone)]
    expect(own).not.toBe(route)
    expect(own).toBe(guard.forRoute(written, { ...alone, label: "b" }))
    await nextTurn()
    const request = {}
    expect(await counted(route, request)).toBe('"g";q=9;w=60, "all";q=9;w=60')
    expect(await counted(own, request)).toBe("")
    expect((await own.check(FACTS, {})).decision.remaining).toBe(7)
  })

  it.each([false, true])(
    "does nothing if its rule does not match, in a limiter that holds requests: %s",
    async (holds) => {
      const held = holds ? [{ ...rules[0], throttle: { kind: "queue" }, name: "held" }] : rules
      const guard = await mount({ rules: held })
      const own = guard.forRoute({ ...RULE, match: { path: "/other" } }, alone)
      const other = await mount({ ...RULE, name: "other" })
      const [request, another] = [{}, {}]
      expect((await own.check(FACTS, request)).decision).toMatchObject({ allowed: true, checks: [] })
      const { decision } = await guard.check(FACTS, request)
      expect((await own.check(FACTS, request)).decision).toBe(decision)
      // A mount of another limiter has already decided the request.
      const before = (await other.check(FACTS, another)).decision
      expect((await own.check(FACTS, another)).decision).toBe(before)
    },
  )
})

it("a mount refunds the units that its routes have taken if refundWhen returns true", async () => {
  const guard = await mount({ ...RULE, limit: 9, refundWhen: () => true })
  const route = guard.forRoute({ ...RULE, limit: 9 }, { label: "a", isAlone: true })
  const other = await mount({ ...RULE, limit: 9, name: "other" })
  await nextTurn()
  const request = {}
  for (const each of [guard, other, route]) await each.check(FACTS, request)
  guard.reportStatus(request, 200)
  await nextTurn()
  const left = async (each: Guard<object>, name: string) =>
    (await each.limiter.peek(FACTS, { rules: [name] })).remaining
  expect([await left(guard, "ip-1m"), await left(guard, "a"), await left(other, "other")]).toEqual([9, 9, 8])
})
