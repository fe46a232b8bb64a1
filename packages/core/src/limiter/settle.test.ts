import { describe, expect, it } from "vitest"
import type { Decision } from "../decision/decision.ts"
import { ClosedError, InvalidOptionError } from "../ground/errors.ts"
import { manualClock } from "../ground/manual-clock.ts"
import type { RequestFacts } from "../request/request.ts"
import type { Rule } from "../rules/rule.ts"
import { memoryStore } from "../stores/memory/memory-store.ts"
import type { Refund, Store } from "../stores/store.ts"
import { methodsOf } from "../stores/testing/methods-of.ts"
import { createLimiter } from "./create-limiter.ts"
import type { LimiterOptions } from "./options/options.ts"
import { KINDS_OF_RULE } from "./rule-set/testing/kinds-of-rule.ts"

const MINUTE = 60_000
const ALICE: RequestFacts = { remoteAddress: "192.0.2.1" }
const QUIET = { warn() {}, error() {} }

function limiterWith(options: LimiterOptions<RequestFacts>) {
  const clock = manualClock()
  const store = memoryStore({ clock })
  const returned: Refund[] = []
  const calls = { takes: 0 }
  const recording: Store = {
    ...methodsOf(store),
    take(checks) {
      calls.takes++
      return store.take(checks)
    },
    refund(refunds) {
      returned.push(...refunds)
      store.refund(refunds)
    },
  }
  const limiter = createLimiter({ clock, store: recording, logger: QUIET, ...options })
  const remaining = async () =>
    (await limiter.peek(ALICE, { cost: 0 })).checks.map((check) => check.remaining)
  return { clock, limiter, remaining, returned, calls }
}

describe.each(KINDS_OF_RULE)("settling by %s", (_name, kind) => {
  const rule = { limit: 100, window: "1 minute", ...kind } as const

  it.each([
    ["refunds unused units", 40, 15, 85],
    ["refunds all units if none were used", 40, 0, 100],
    ["changes nothing if all units were used", 40, 40, 60],
    ["charges the units that were used in addition", 40, 70, 30],
    ["charges units above the limit", 40, 140, 0],
    ["charges all units if none were reserved", 0, 25, 75],
  ])("%s", async (_what, reserved, used, left) => {
    const { limiter, clock, remaining } = limiterWith(rule)
    clock.advance(1_000)
    const decision = await limiter.decide(ALICE, { cost: reserved })
    await limiter.settle(decision, used)
    expect(await remaining()).toEqual([left])
    expect((await limiter.peek(ALICE, { cost: left + 1 })).allowed).toBe(false)
    expect((await limiter.peek(ALICE, { cost: left })).allowed).toBe(true)
  })

  it("has no effect after the window has passed", async () => {
    for (const used of [0, 90]) {
      const { limiter, clock, remaining } = limiterWith(rule)
      const decision = await limiter.decide(ALICE, { cost: 40 })
      clock.advance(3 * MINUTE)
      await limiter.decide(ALICE, { cost: 10 })
      await limiter.settle(decision, used)
      expect([used, await remaining()]).toEqual([used, [90]])
      expect((await limiter.peek(ALICE, { cost: 91 })).allowed).toBe(false)
    }
  })

  it("takes effect only once, and only one of settle and refund takes effect", async () => {
    const { limiter, remaining } = limiterWith(rule)
    const [first, second, third] = [
      await limiter.decide(ALICE, { cost: 20 }),
      await limiter.decide(ALICE, { cost: 20 }),
      await limiter.decide(ALICE, { cost: 20 }),
    ]
    await Promise.all([limiter.settle(first, 10), limiter.settle(first, 10), limiter.settle(first, 5)])
    expect(await remaining()).toEqual([50])
    await limiter.refund(first)
    expect(await remaining()).toEqual([50])
    await limiter.refund(second)
    await limiter.settle(second, 50)
    expect(await remaining()).toEqual([70])
    await limiter.settle(third, 30)
    await limiter.refund(third)
    expect(await remaining()).toEqual([60])
  })

  const quotas: [number, string][] = [
    [100, "1 minute"],
    [2 ** 36, "1 minute"],
    [1_000_000_000, "30 days"],
  ]
  // A log has an entry for each unit, so its limit cannot be large.
  it.each(kind.algorithm === "sliding-log" ? quotas.slice(0, 1) : quotas)(
    "keeps the counter of %i in %s valid, however much is charged and however often",
    async (limit, window) => {
      const { limiter, clock } = limiterWith({ ...rule, limit, window })
      for (let i = 0; i < 20; i++) {
        const decision = await limiter.decide(ALICE, { cost: 0 })
        await limiter.settle(decision, Number.MAX_SAFE_INTEGER)
        clock.advance(100)
      }
      const decision = await limiter.decide(ALICE)
      expect(decision).toMatchObject({ allowed: false, degraded: false, remaining: 0, refusal: "quota" })
      expect(decision.retryAfterMs).toBeGreaterThan(0)
      expect(Number.isSafeInteger(decision.retryAfterMs)).toBe(true)
      clock.advance(decision.retryAfterMs - 1)
      expect((await limiter.peek(ALICE)).allowed).toBe(false)
      clock.advance(1)
      expect((await limiter.peek(ALICE)).allowed).toBe(true)
    },
  )
})

describe("settling", () => {
  it("multiplies the units by each rule's own cost, including shadow rules that took units", async () => {
    const rules: Rule[] = [
      { name: "tokens", limit: 1_000, window: "1 minute", field: "ip" },
      { name: "cents", limit: 10_000, window: "1 day", field: "ip", cost: 3 },
      { name: "tried", field: "service", limit: 500, window: "1 day", shadow: true },
    ]
    const { limiter, remaining } = limiterWith({ rules })
    await limiter.settle(await limiter.decide(ALICE, { cost: 100 }), 40)
    expect(await remaining()).toEqual([960, 9_880, 460])
    await limiter.settle(await limiter.decide(ALICE, { cost: 100 }), 200)
    expect(await remaining()).toEqual([760, 9_280, 260])
  })

  it("does not charge a shadow rule that would have refused, because it took nothing", async () => {
    const rules: Rule[] = [
      { name: "tokens", limit: 1_000, window: "1 minute", field: "ip" },
      { name: "tried", field: "service", limit: 50, window: "1 day", shadow: true },
    ]
    const { limiter, remaining } = limiterWith({ rules })
    const decision = await limiter.decide(ALICE, { cost: 60 })
    expect(decision.shadowed).toEqual(["tried"])
    await limiter.settle(decision, 100)
    expect(await remaining()).toEqual([900, 50])
  })

  it("uses the units that takeUpTo has granted", async () => {
    const { limiter, remaining } = limiterWith({ limit: 100, window: "1 minute", cost: 7 })
    await limiter.decide(ALICE, { cost: 30 })
    const decision = await limiter.takeUpTo(ALICE, 90)
    expect(decision.cost).toBe(70)
    await limiter.settle(decision, 25)
    expect(await remaining()).toEqual([45])
  })

  it("has no effect on refusals, decisions without a rule, and peeks, and rejects a copy", async () => {
    const { limiter, remaining, returned } = limiterWith({
      limit: 10,
      window: "1 minute",
      deny: ["192.0.2.9"],
    })
    const taken = await limiter.decide(ALICE, { cost: 8 })
    await limiter.settle(await limiter.decide(ALICE, { cost: 8 }), 9)
    await limiter.settle(await limiter.decide({ remoteAddress: "192.0.2.9" }), 9)
    await limiter.settle(await limiter.peek(ALICE), 9)
    await expect(limiter.settle({ ...taken }, 0)).rejects.toThrow(
      "the original decision, in the process that",
    )
    expect([await remaining(), returned]).toEqual([[2], []])
    const none = limiterWith({ rules: [] })
    await none.limiter.settle(await none.limiter.decide(ALICE), 9)
    await none.limiter.settle(await none.limiter.takeUpTo(ALICE, 3), 9)
    expect(none.returned).toEqual([])
  })

  it("does not call the store if exactly the reserved units were used", async () => {
    const { limiter, returned } = limiterWith({ limit: 10, window: "1 minute" })
    await limiter.settle(await limiter.decide(ALICE, { cost: 8 }), 8)
    expect(returned).toEqual([])
    // A burst may also be larger than a year's quota, which is the largest charge.
    const yearly = { limit: 1, window: "365 days", algorithm: "token-bucket", burst: 100 } as const
    const saved = limiterWith(yearly)
    await saved.limiter.settle(await saved.limiter.decide(ALICE, { cost: 50 }), 50)
    expect(saved.returned).toEqual([])
  })

  it.each([
    ["a token bucket", { algorithm: "token-bucket" }],
    ["a token bucket with periodic refills", { algorithm: "token-bucket", refill: "periodic" }],
    ["a leaky bucket", { algorithm: "leaky-bucket" }],
  ] as const)(
    "charges %s in full, even if more units than were reserved have come back since",
    async (_what, kind) => {
      const { limiter, clock } = limiterWith({ limit: 10_000, window: "1 minute", burst: 10_000, ...kind })
      const held: Decision[] = []
      let settled = 0
      // Requests are sent at twice the rate. Each request takes half a minute, and reports only at its end that it
      // used 1,000 units.
      for (let second = 0; second < 600; second += 3) {
        const decision = await limiter.decide(ALICE)
        if (decision.allowed) held.push(decision)
        clock.advance(3_000)
        if (held.length > 10 || !decision.allowed) {
          const done = held.shift()
          if (done !== undefined) await limiter.settle(done, 1_000)
          if (done !== undefined) settled += 1_000
        }
      }
      // The sum of the burst, ten minutes of the rate, and the requests that were admitted before earlier ones were
      // charged.
      expect(settled).toBeLessThanOrEqual(10_000 + 10 * 10_000 + 11 * 1_000)
      expect(settled).toBeGreaterThan(90_000)
    },
  )

  it("settles in the process if the units were counted there while the store was unavailable", async () => {
    const clock = manualClock()
    const inner = memoryStore({ clock })
    const store: Store = {
      ...methodsOf(inner),
      take() {
        throw new Error("down")
      },
      read() {
        throw new Error("down")
      },
      refund: () => expect.unreachable("it has taken nothing"),
    }
    const limiter = createLimiter({ limit: 10, window: "1 minute", clock, store, logger: QUIET })
    await limiter.settle(await limiter.decide(ALICE, { cost: 8 }), 3)
    expect(await limiter.peek(ALICE, { cost: 0 })).toMatchObject({ degraded: true, remaining: 7 })
  })

  it("rejects with the error of the store, as a refund does", async () => {
    const clock = manualClock()
    const inner = memoryStore({ clock })
    const store: Store = {
      ...methodsOf(inner),
      refund: async () => {
        throw new Error("down")
      },
    }
    const limiter = createLimiter({ limit: 10, window: "1 minute", clock, store, logger: QUIET })
    const decision = await limiter.decide(ALICE, { cost: 8 })
    await expect(limiter.settle(decision, 3)).rejects.toThrow("down")
    // The store may have applied the first call, so a second call could refund twice.
    await expect(limiter.settle(decision, 3)).resolves.toBeUndefined()
  })

  it.each([-1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, "3", undefined])(
    "rejects %s as units, and the decision can still be settled",
    async (units) => {
      const { limiter, remaining } = limiterWith({ limit: 10, window: "1 minute" })
      const decision: Decision = await limiter.decide(ALICE, { cost: 8 })
      const settling = limiter.settle(decision, units as number)
      await expect(settling).rejects.toThrow(InvalidOptionError)
      await expect(settling).rejects.toThrow("accepted: 0 or a positive whole number")
      await limiter.settle(decision, 1)
      expect(await remaining()).toEqual([9])
    },
  )

  it("rejects once the limiter is closed", async () => {
    const { limiter } = limiterWith({ limit: 10, window: "1 minute" })
    const decision = await limiter.decide(ALICE)
    await limiter.close()
    await expect(limiter.settle(decision, 0)).rejects.toThrow(ClosedError)
  })
})
