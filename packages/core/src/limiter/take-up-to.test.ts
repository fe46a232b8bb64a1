import { describe, expect, it } from "vitest"
import type { Decision } from "../decision/decision.ts"
import { InvalidOptionError } from "../ground/errors.ts"
import { manualClock } from "../ground/manual-clock.ts"
import type { RequestFacts } from "../request/request.ts"
import type { Rule } from "../rules/rule.ts"
import { memoryStore } from "../stores/memory/memory-store.ts"
import type { Check, Store } from "../stores/store.ts"
import { methodsOf } from "../stores/testing/methods-of.ts"
import { createLimiter } from "./create-limiter.ts"
import type { LimiterOptions } from "./options/options.ts"
import { KINDS_OF_RULE } from "./rule-set/testing/kinds-of-rule.ts"

const ALICE: RequestFacts = { remoteAddress: "192.0.2.1" }
const QUIET = { warn() {}, error() {} }

function limiterWith(options: LimiterOptions<RequestFacts>) {
  const clock = manualClock()
  return { clock, limiter: createLimiter({ clock, logger: QUIET, ...options }) }
}

/** Returns a memory store that calls `before` right before each take and records the requested units. */
function busyStore(clock: ReturnType<typeof manualClock>, before: (store: Store, check: Check) => void) {
  const inner = memoryStore({ clock })
  const asked: number[] = []
  const store: Store = {
    ...methodsOf(inner),
    take(checks) {
      const check = checks[0] as Check
      before(inner, check)
      asked.push(check.cost)
      return inner.take(checks)
    },
  }
  return { store, asked }
}

const told = ({ allowed, cost, remaining, retryAfterMs }: Decision) => ({
  allowed,
  cost,
  remaining,
  retryAfterMs,
})

describe.each(KINDS_OF_RULE)("takeUpTo by %s", (_name, kind) => {
  it("grants all units, then the remaining ones, then refuses with the wait for one unit", async () => {
    const { limiter, clock } = limiterWith({ limit: 10, window: "1 minute", ...kind })
    clock.advance(1_000)
    expect(told(await limiter.takeUpTo(ALICE, 7))).toMatchObject({ allowed: true, cost: 7, remaining: 3 })
    expect(told(await limiter.takeUpTo(ALICE, 7))).toMatchObject({ allowed: true, cost: 3, remaining: 0 })
    const refused = await limiter.takeUpTo(ALICE, 7)
    expect(told(refused)).toMatchObject({ allowed: false, cost: 0, remaining: 0 })
    expect(refused.refusal).toBe("quota")
    clock.advance(refused.retryAfterMs - 1)
    expect(told(await limiter.takeUpTo(ALICE, 7))).toMatchObject({ allowed: false, retryAfterMs: 1 })
    clock.advance(1)
    const granted = await limiter.takeUpTo(ALICE, 7)
    expect(granted.allowed).toBe(true)
    expect(granted.cost).toBeGreaterThanOrEqual(1)
  })

  it("grants exactly the remaining units, at any time and after any use", async () => {
    for (let seed = 1; seed <= 15; seed++) {
      const { limiter, clock } = limiterWith({ limit: 20, window: "1 minute", ...kind })
      clock.advance((seed * 7_919) % 60_000)
      for (let step = 0; step < 6; step++) {
        const { remaining } = await limiter.peek(ALICE, { cost: 0 })
        const asked = 1 + ((seed * 31 + step * 17) % 29)
        const { allowed, cost } = await limiter.takeUpTo(ALICE, asked)
        expect([seed, step, allowed, cost]).toEqual([seed, step, remaining > 0, Math.min(asked, remaining)])
        clock.advance((seed * 1_237 + step * 4_001) % 25_000)
      }
    }
  })
})

describe("takeUpTo", () => {
  it("admits 0 units without taking anything, even if nothing is left", async () => {
    const { limiter } = limiterWith({ limit: 1, window: "1 minute" })
    await limiter.decide(ALICE)
    expect(told(await limiter.takeUpTo(ALICE, 0))).toMatchObject({ allowed: true, cost: 0, remaining: 0 })
  })

  it("takes at most the limit in one call, however many units are requested", async () => {
    const clock = manualClock()
    const { store, asked } = busyStore(clock, () => undefined)
    const { limiter } = limiterWith({ limit: 10, window: "1 minute", store, clock })
    const { cost } = await limiter.takeUpTo(ALICE, Number.MAX_SAFE_INTEGER)
    expect([cost, asked]).toEqual([10, [10]])
  })

  it("calls the store twice if too few units remain: for all requested units, then for the remaining ones", async () => {
    const clock = manualClock()
    const { store, asked } = busyStore(clock, () => undefined)
    const { limiter } = limiterWith({ limit: 10, window: "1 minute", store, clock })
    await limiter.decide(ALICE, { cost: 4 })
    expect((await limiter.takeUpTo(ALICE, 8)).cost).toBe(6)
    expect(asked).toEqual([4, 8, 6])
  })

  it("multiplies the units by each rule's own cost, and reports the units", async () => {
    const rules: Rule[] = [
      { name: "pages", limit: 100, window: "1 minute", field: "ip", cost: 3 },
      { name: "day", limit: 50, window: "1 day", field: "ip", cost: 2 },
    ]
    const { limiter } = limiterWith({ rules })
    const decision = await limiter.takeUpTo(ALICE, 100)
    // 25 units take 25 from the day rule and 75 from the minute rule.
    expect(decision).toMatchObject({ allowed: true, cost: 25, policy: "day" })
    expect(decision.checks.map(({ cost, remaining }) => [cost, remaining])).toEqual([
      [75, 25],
      [50, 0],
    ])
  })

  it("takes the same number under all rules, limited by the rule with the fewest units", async () => {
    const rules: Rule[] = [
      { name: "minute", limit: 10, window: "1 minute", field: "ip" },
      { name: "service", field: "service", limit: 4, window: "1 minute" },
    ]
    const { limiter } = limiterWith({ rules })
    expect((await limiter.takeUpTo(ALICE, 6)).cost).toBe(4)
    expect((await limiter.peek(ALICE)).checks.map(({ remaining }) => remaining)).toEqual([6, 0])
    expect(told(await limiter.takeUpTo(ALICE, 6))).toMatchObject({ allowed: false, cost: 0 })
    expect((await limiter.peek(ALICE)).checks.map(({ remaining }) => remaining)).toEqual([6, 0])
  })

  it("is not limited by a shadow rule with fewer units, or by a rule that was not read", async () => {
    const clock = manualClock()
    const rules: Rule[] = [
      { name: "real", limit: 10, window: "1 minute", field: "ip" },
      { name: "tried", limit: 5, window: "1 minute", field: "ip", shadow: true },
      { name: "elsewhere", field: "service", limit: 20, window: "1 minute" },
    ]
    const { store } = busyStore(clock, () => undefined)
    // The third counter is on another server, which is not called if the first server has refused.
    const take: Store["take"] = async (checks) => {
      const answer = await store.take(checks)
      return answer.granted ? answer : { ...answer, checks: answer.checks.toSpliced(2, 1, undefined) }
    }
    const { limiter } = limiterWith({ rules, store: { ...store, take }, clock })
    await limiter.decide(ALICE, { cost: 4 })
    expect(await limiter.takeUpTo(ALICE, 9)).toMatchObject({ allowed: true, cost: 6, shadowed: ["tried"] })
  })

  it("requests no more units than fit at the rule's own cost", async () => {
    const clock = manualClock()
    const { store, asked } = busyStore(clock, () => undefined)
    const rules: Rule[] = [{ name: "dear", limit: 10, window: "1 minute", field: "ip", cost: 2 }]
    const { limiter } = limiterWith({ rules, store, clock })
    await limiter.decide(ALICE, { cost: 2 })
    expect((await limiter.takeUpTo(ALICE, 5)).cost).toBe(3)
    expect(asked).toEqual([4, 10, 6])
  })

  it("calls the store once for a blocked client, because fewer units would not be granted either", async () => {
    const clock = manualClock()
    const { store, asked } = busyStore(clock, () => undefined)
    const penalty = { refusals: 1, within: "1 minute", for: "1 hour" }
    const { limiter } = limiterWith({ limit: 5, window: "1 minute", penalty, store, clock })
    await limiter.decide(ALICE, { cost: 5 })
    await limiter.decide(ALICE)
    clock.advance(120_000)
    expect(await limiter.takeUpTo(ALICE, 3)).toMatchObject({ allowed: false, refusal: "penalty" })
    // The store was only peeked.
    expect(asked).toEqual([5, 1])
  })

  it.each([0, 10, 11, 12])("grants up to the soft ceiling, with %i taken", async (taken) => {
    const throttle = { kind: "soft", percent: 30 } as const
    const { limiter } = limiterWith({ limit: 10, window: "1 minute", throttle })
    await limiter.decide(ALICE, { cost: taken })
    const decision = await limiter.takeUpTo(ALICE, 20)
    expect(decision).toMatchObject({ allowed: true, cost: 13 - taken, remaining: 0, overLimit: true })
    expect((await limiter.takeUpTo(ALICE, 1)).allowed).toBe(false)
  })

  it("returns all granted units once on a refund", async () => {
    const { limiter } = limiterWith({ limit: 10, window: "1 minute" })
    await limiter.decide(ALICE, { cost: 3 })
    const granted = await limiter.takeUpTo(ALICE, 9)
    await limiter.refund(granted)
    await limiter.refund(granted)
    expect((await limiter.peek(ALICE, { cost: 0 })).remaining).toBe(7)
  })

  it("tries fewer units if other requests take some in between, and finally a single unit", async () => {
    const clock = manualClock()
    let isBusy = false
    const { store, asked } = busyStore(clock, (inner, check) => {
      if (isBusy) inner.take([{ ...check, cost: 1 }])
    })
    const { limiter } = limiterWith({ limit: 10, window: "1 minute", store, clock })
    await limiter.decide(ALICE, { cost: 2 })
    isBusy = true
    expect((await limiter.takeUpTo(ALICE, 10)).cost).toBe(1)
    expect(asked).toEqual([2, 10, 7, 6, 5, 1])
  })

  it("grants all units if no rule applies or nothing is counted", async () => {
    const none = limiterWith({ rules: [] })
    expect(await none.limiter.takeUpTo(ALICE, 5)).toMatchObject({ allowed: true, cost: 5, policy: "" })
    const off = limiterWith({ limit: 1, window: "1 minute", enabled: false })
    expect(await off.limiter.takeUpTo(ALICE, 5)).toMatchObject({ allowed: true, cost: 5, policy: "" })
    expect((await none.limiter.decide(ALICE)).cost).toBe(0)
  })

  it("emits no event if nothing is counted, as with decide", async () => {
    const told: string[] = []
    for (const options of [{ enabled: false }, { skip: () => true }, {}]) {
      const { limiter } = limiterWith({ limit: 1, window: "1 minute", ...options })
      limiter.on("decision", (_decision, _request, { operation }) => void told.push(operation))
      await limiter.decide(ALICE)
      await limiter.takeUpTo(ALICE, 1)
    }
    expect(told).toEqual(["decide", "takeUpTo"])
  })

  it("refuses forever if one unit costs more than the limit", async () => {
    const { limiter } = limiterWith({ limit: () => 0, window: "1 minute" })
    expect(await limiter.takeUpTo(ALICE, 5)).toMatchObject({
      allowed: false,
      refusal: "cost",
      retryAfterMs: Number.POSITIVE_INFINITY,
    })
  })

  it("emits one decision event", async () => {
    const { limiter } = limiterWith({ limit: 10, window: "1 minute" })
    const costs: number[] = []
    limiter.on("decision", ({ cost }) => void costs.push(cost))
    await limiter.decide(ALICE, { cost: 4 })
    await limiter.takeUpTo(ALICE, 8)
    expect(costs).toEqual([4, 6])
  })

  it("grants the units of the local counters while the store is unavailable", async () => {
    const clock = manualClock()
    const inner = memoryStore({ clock })
    const store: Store = {
      ...methodsOf(inner),
      take() {
        throw new Error("down")
      },
    }
    const local = limiterWith({ limit: 10, window: "1 minute", store, clock }).limiter
    expect(await local.takeUpTo(ALICE, 7)).toMatchObject({ allowed: true, cost: 7, degraded: true })
    expect(await local.takeUpTo(ALICE, 7)).toMatchObject({ allowed: true, cost: 3, degraded: true })
    expect(await local.takeUpTo(ALICE, 7)).toMatchObject({ allowed: false, cost: 0, degraded: true })
    const allow = limiterWith({
      limit: 10,
      window: "1 minute",
      name: "allow",
      store,
      clock,
      onStoreFailure: "allow",
    })
    expect(await allow.limiter.takeUpTo(ALICE, 7)).toMatchObject({ allowed: true, cost: 7, degraded: true })
    const deny = limiterWith({
      limit: 10,
      window: "1 minute",
      name: "deny",
      store,
      clock,
      onStoreFailure: "deny",
    })
    expect(await deny.limiter.takeUpTo(ALICE, 7)).toMatchObject({ allowed: false, refusal: "store-failure" })
  })

  it.each([-1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, "3", undefined])(
    "rejects %s as units",
    async (units) => {
      const { limiter } = limiterWith({ limit: 10, window: "1 minute" })
      const asking = limiter.takeUpTo(ALICE, units as number)
      await expect(asking).rejects.toThrow(InvalidOptionError)
      await expect(asking).rejects.toThrow("accepted: 0 or a positive whole number")
    },
  )
})
