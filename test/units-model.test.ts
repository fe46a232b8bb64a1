import { createLimiter, type Decision, memoryStore, type Rule, type Store } from "@sluice/core"
import { manualClock } from "@sluice/core/testing"
import { redisStore } from "@sluice/redis"
import { leasedStore } from "@sluice/scale"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { redisForTests } from "./servers/redis-for-tests.ts"
import { examples } from "./test-length.ts"

// Each counter is the sum of its own unit, whatever is decided, settled and refunded. The rules have one window that
// never ends, so the model is three sums.

const UNITS = ["requests", "tokens", "bytes"] as const
type Unit = (typeof UNITS)[number]
type Amounts = Readonly<Record<Unit, number>>

const LIMITS: Amounts = { requests: 12, tokens: 100, bytes: 1_000 }
const RULES: readonly Rule<object>[] = UNITS.map((unit) => ({
  ...{ name: unit, field: "service", counts: unit, limit: LIMITS[unit] },
  ...{ window: "366 days", algorithm: "fixed-window" },
}))

type Step =
  | { readonly kind: "decide" | "acquire"; readonly units: Amounts }
  | { readonly kind: "takeUpTo"; readonly units: number; readonly unit: Unit }
  | { readonly kind: "settle"; readonly of: number; readonly used: Partial<Amounts> }
  | { readonly kind: "refund"; readonly of: number }

const amounts: fc.Arbitrary<Amounts> = fc.record({
  requests: fc.nat(3),
  tokens: fc.nat(40),
  bytes: fc.nat(300),
})
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constantFrom("decide", "acquire"), units: amounts }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("takeUpTo"),
      units: fc.nat(90),
      unit: fc.constantFrom(...UNITS),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("settle"),
      of: fc.nat(30),
      used: fc.record({ requests: fc.nat(3), tokens: fc.nat(60), bytes: fc.nat(400) }, { requiredKeys: [] }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("refund"), of: fc.nat(30) }) },
)

/** What a decision has taken, until it is settled or refunded. */
interface Taken {
  readonly decision: Decision
  readonly units: Amounts
}

class Model {
  readonly used: Record<Unit, number> = { requests: 0, tokens: 0, bytes: 0 }
  readonly taken: Taken[] = []

  fits(units: Amounts): boolean {
    return UNITS.every((unit) => units[unit] === 0 || this.used[unit] + units[unit] <= LIMITS[unit])
  }

  take(decision: Decision, units: Amounts): void {
    for (const unit of UNITS) this.used[unit] += units[unit]
    this.taken.push({ decision, units })
  }

  /** Corrects the units of a decision. Returns the decision; undefined if nothing can be corrected. */
  correct(of: number, used: Partial<Amounts>): Decision | undefined {
    const [one] = this.taken.splice(of % Math.max(1, this.taken.length), 1)
    if (one === undefined) return undefined
    for (const unit of UNITS) this.used[unit] += (used[unit] ?? one.units[unit]) - one.units[unit]
    return one.decision
  }
}

const NOTHING: Amounts = { requests: 0, tokens: 0, bytes: 0 }
const ONE_EACH: Amounts = { requests: 1, tokens: 1, bytes: 1 }

/** Takes the steps with a limiter and in the model, and compares them. */
async function compare(
  store: Store,
  service: string,
  steps: readonly Step[],
  isExact: boolean,
): Promise<Model> {
  const model = new Model()
  const clock = manualClock(1_000_000)
  const units = { tokens: 1, bytes: 1 }
  const limiter = createLimiter<object>({
    store,
    service,
    rules: RULES,
    units,
    clock,
    storeTimeoutMs: 20_000,
  })
  for (const each of steps) {
    if (each.kind === "settle") {
      const decision = model.correct(each.of, each.used)
      if (decision !== undefined) await limiter.settle(decision, each.used)
    } else if (each.kind === "refund") {
      const decision = model.correct(each.of, NOTHING)
      if (decision !== undefined) await limiter.refund(decision)
    } else if (each.kind === "takeUpTo") {
      const decision = await limiter.takeUpTo({}, each.units, { unit: each.unit })
      const granted = { ...ONE_EACH, [each.unit]: decision.cost }
      if (isExact) {
        const left = Math.max(0, LIMITS[each.unit] - model.used[each.unit])
        const most = { ...ONE_EACH, [each.unit]: Math.min(each.units, Math.max(1, left)) }
        expect(decision.allowed, JSON.stringify(each)).toBe(model.fits(most))
        if (decision.allowed) expect(granted).toEqual(most)
      }
      if (decision.allowed) model.take(decision, granted)
    } else {
      const call = { units: each.units, maxWaitMs: 0 }
      const { units: asked } = each
      const decision =
        each.kind === "decide"
          ? await limiter.decide({}, { units: asked })
          : await limiter.acquire({}, call).catch((error: { readonly decision: Decision }) => error.decision)
      if (isExact) expect(decision.allowed, JSON.stringify(each)).toBe(model.fits(asked))
      if (decision.allowed) model.take(decision, asked)
    }
    if (isExact) await expectSums(limiter, model)
  }
  await limiter.close()
  return model
}

async function expectSums(
  limiter: { peek(request: object): Promise<Decision> },
  { used }: Model,
): Promise<void> {
  const { checks } = await limiter.peek({})
  const left = Object.fromEntries(checks.map(({ policy, remaining }) => [policy, remaining]))
  expect(left).toEqual(
    Object.fromEntries(UNITS.map((unit) => [unit, Math.max(0, LIMITS[unit] - used[unit])])),
  )
}

describe("after random decisions, settlements and refunds,", () => {
  it("the counters in memory match a model that adds up each unit", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps) => {
        await compare(memoryStore({ clock: manualClock(1_000_000) }), "s", steps, true)
      }),
      { numRuns: examples(100, 2_000) },
    )
  })

  it("the counters in Redis match a model that adds up each unit", async () => {
    const { client } = await redisForTests()
    let made = 0
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 20 }), async (steps) => {
        const store = redisStore({
          client,
          clock: manualClock(1_000_000),
          prefix: `units${made++}:`,
          timeoutMs: 20_000,
        })
        await compare(store, "s", steps, true)
        await store.close()
      }),
      { numRuns: examples(20, 300) },
    )
  })

  it("the counters behind leases match a model that adds up each unit, once unused units are returned", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps) => {
        const clock = manualClock(1_000_000)
        const shared = memoryStore({ clock })
        const close = shared.close.bind(shared)
        const leased = leasedStore(
          Object.assign(shared, { isShared: true, close: () => Promise.resolve() }),
          {
            clock,
            leastLimit: 1,
          },
        )
        const model = await compare(leased, "s", steps, false)
        await leased.close()
        const direct = createLimiter<object>({
          store: shared,
          service: "s",
          rules: RULES,
          units: { tokens: 1, bytes: 1 },
          clock,
        })
        await expectSums(direct, model)
        await close()
      }),
      { numRuns: examples(50, 1_000) },
    )
  })
})

describe("a rule with a window function", () => {
  const WINDOWS = ["1 second", "7 seconds", "1 minute"] as const
  const MS = { "1 second": 1_000, "7 seconds": 7_000, "1 minute": 60_000 } as const
  const histories = fc.array(
    fc.record({ window: fc.constantFrom(...WINDOWS), waitMs: fc.nat(4_000), cost: fc.nat(3) }),
    { maxLength: 25 },
  )

  it.each(["memory", "Redis"])("counts each of its windows alone, as a model does, in %s", async (kind) => {
    const { client } = await redisForTests()
    let made = 0
    await fc.assert(
      fc.asyncProperty(histories, async (steps) => {
        const clock = manualClock()
        const prefix = `windows${made++}:`
        const store =
          kind === "memory"
            ? memoryStore({ clock })
            : redisStore({ client, clock, prefix, timeoutMs: 20_000 })
        const limiter = createLimiter<{ window: string }>({
          ...{ name: "plan", field: "service", limit: 5, algorithm: "fixed-window" },
          ...{
            window: async (request: { window: string }) => request.window,
            store,
            service: "s",
            clock,
            storeTimeoutMs: 20_000,
          },
        })
        const used = new Map<string, number>()
        for (const { window, waitMs, cost } of steps) {
          clock.advance(waitMs)
          const key = `${window} ${Math.floor(clock.now() / MS[window])}`
          const before = used.get(key) ?? 0
          const { allowed, remaining } = await limiter.decide({ window }, { cost })
          const after = cost === 0 || before + cost <= 5 ? before + cost : before
          expect([allowed, remaining]).toEqual([cost === 0 || before + cost <= 5, 5 - after])
          used.set(key, after)
        }
        await limiter.close()
        await store.close()
      }),
      { numRuns: examples(20, 300) },
    )
  })
})
