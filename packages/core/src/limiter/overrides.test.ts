import { expect, it } from "vitest"
import { manualClock } from "../ground/manual-clock.ts"
import type { RequestFacts } from "../request/request.ts"
import type { RateRule, Rule } from "../rules/rule.ts"
import { memoryStore } from "../stores/memory/memory-store.ts"
import { createLimiter } from "./create-limiter.ts"

interface Asker extends RequestFacts {
  readonly user?: string
}

function limiterWith(rule: Partial<RateRule<Asker>>) {
  const store = memoryStore({ clock: manualClock() })
  const fields = { user: ({ user }: Asker) => user }
  const rules: Rule<Asker>[] = [{ name: "r", field: "user", limit: 3, window: "1 minute", ...rule }]
  return createLimiter<Asker>({ rules, fields, store })
}

async function admittedOf(limiter: ReturnType<typeof limiterWith>, request: Asker, of = 12): Promise<number> {
  let admitted = 0
  for (let i = 0; i < of; i++) if ((await limiter.decide(request)).allowed) admitted++
  return admitted
}

it("an override sets the limit of a named client, and the rule's limit applies to all others", async () => {
  const limiter = limiterWith({ overrides: { ann: 1, bob: { limit: 5 } } })
  expect(await limiter.decide({ user: "bob" })).toMatchObject({ limit: 5, remaining: 4 })
  expect(await admittedOf(limiter, { user: "ann" })).toBe(1)
  expect(await admittedOf(limiter, { user: "bob" })).toBe(4)
  expect(await admittedOf(limiter, { user: "cat" })).toBe(3)
  expect(await admittedOf(limiter, { user: "Ann" })).toBe(3)
})

it("a rule has no overrides for clients with the names of inherited object members", async () => {
  const limiter = limiterWith({ overrides: { ann: 1 } })
  expect(await admittedOf(limiter, { user: "constructor" })).toBe(3)
  expect(await admittedOf(limiter, { user: "__proto__" })).toBe(3)
})

it("counts remain when an override is added, changed or removed", async () => {
  const store = memoryStore({ clock: manualClock() })
  const fields = { user: ({ user }: Asker) => user }
  const remaining: (number | undefined)[] = []
  for (const overrides of [{}, { ann: 9 }, { ann: 4 }, undefined]) {
    const rules: Rule<Asker>[] = [{ name: "r", field: "user", limit: 6, window: "1 minute", overrides }]
    const limiter = createLimiter<Asker>({ rules, fields, store })
    remaining.push((await limiter.decide({ user: "ann" })).remaining)
    await limiter.close()
  }
  expect(remaining).toEqual([5, 7, 1, 2])
})

it("an override applies instead of a limit function, which is not called", async () => {
  const asked: (string | undefined)[] = []
  const limit = ({ user }: Asker): number => {
    asked.push(user)
    return 3
  }
  const limiter = limiterWith({ limit, overrides: { ann: 1 } })
  expect(await admittedOf(limiter, { user: "ann" })).toBe(1)
  expect(await admittedOf(limiter, { user: "bob" }, 1)).toBe(1)
  expect(asked).toEqual(["bob"])
})

it("the override of the narrowest address range applies, also for a single address of an IPv6 network", async () => {
  const rule = {
    field: "ip",
    overrides: { "10.0.0.0/8": 4, "10.1.0.0/16": 5, "10.1.2.3": 6, "2001:db8::/32": 7, "2001:db8::9": 8 },
  }
  const limitOf = async (remoteAddress: string) => (await limiterWith(rule).decide({ remoteAddress })).limit
  expect(await limitOf("10.9.9.9")).toBe(4)
  expect(await limitOf("10.1.9.9")).toBe(5)
  expect(await limitOf("10.1.2.3")).toBe(6)
  expect(await limitOf("::ffff:10.1.2.3")).toBe(6)
  expect(await limitOf("11.0.0.1")).toBe(3)
  expect(await limitOf("2001:db8:5::1")).toBe(7)
  expect(await limitOf("2001:db8::9")).toBe(8)
  expect(await limitOf("2001:db9::9")).toBe(3)
})

it("a client without the field has no override", async () => {
  const limiter = limiterWith({ overrides: { "192.0.2.7": 1, "@ip:192.0.2.7": 1 } })
  expect(await admittedOf(limiter, { remoteAddress: "192.0.2.7" })).toBe(3)
})

it("soft and elastic throttling begin at a share of the override", async () => {
  const soft = limiterWith({ throttle: { kind: "soft", percent: 50 }, overrides: { ann: 6 } })
  expect(await admittedOf(soft, { user: "ann" })).toBe(9)
  expect(await admittedOf(soft, { user: "bob" })).toBe(4)
  const elastic = limiterWith({
    throttle: { kind: "elastic", ceiling: 8, signal: () => true },
    overrides: { ann: 6 },
  })
  expect(await admittedOf(elastic, { user: "ann" })).toBe(8)
  expect(await admittedOf(elastic, { user: "bob" })).toBe(8)
})

it("the rule's burst applies unless the override has one", async () => {
  const rule = {
    algorithm: "token-bucket",
    burst: 5,
    overrides: { ann: 9, bob: { limit: 9, burst: 7 } },
  } as const
  const limiter = limiterWith(rule)
  expect(await admittedOf(limiter, { user: "ann" })).toBe(5)
  expect(await admittedOf(limiter, { user: "bob" })).toBe(7)
  expect(await admittedOf(limiter, { user: "cat" })).toBe(5)
  const tooMuch = await limiter.decide({ user: "bob" }, { cost: 8 })
  expect(tooMuch).toMatchObject({ allowed: false, refusal: "cost", limit: 9 })
})

it("an override does not exempt a client from the ranges in deny and allow", async () => {
  const rule = {
    field: "ip",
    allow: ["10.0.0.0/8"],
    deny: ["11.0.0.0/8"],
    overrides: { "10.0.0.1": 1, "11.0.0.1": 1 },
  }
  const limiter = limiterWith(rule)
  expect(await admittedOf(limiter, { remoteAddress: "10.0.0.1" })).toBe(12)
  expect(await admittedOf(limiter, { remoteAddress: "11.0.0.1" })).toBe(0)
})

it("a refusal names the largest cost that a client with an override may have", async () => {
  const rule = { algorithm: "token-bucket", limit: 5, overrides: { vip: { limit: 5, burst: 50 } } } as const
  expect((await limiterWith(rule).decide({ user: "ann" }, { cost: 6 })).refusal).toBe("cost")
  expect((await limiterWith(rule).decide({ user: "vip" }, { cost: 50 })).allowed).toBe(true)
  const guarded = () =>
    createLimiter({
      ...rule,
      field: "ip",
      overrides: { "10.0.0.1": { limit: 5, burst: 50 } },
      window: 1_000,
      cost: 20,
    })
  expect(guarded).toThrow("never admits more than 5")
})
