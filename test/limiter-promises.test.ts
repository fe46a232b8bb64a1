import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { createLimiter, type Decision, type Limiter, type Rule } from "../packages/core/src/index.ts"
import { type ManualClock, manualClock } from "../packages/core/src/testing.ts"

/** One step of a limiter's client: it waits and then requests units. */
interface Step {
  readonly afterMs: number
  readonly cost: number
  readonly client: number
}

interface Story {
  readonly rules: readonly Rule[]
  readonly offsetMs: number
  readonly steps: readonly Step[]
}

const WINDOWS_MS = [1, 10, 1_000, 60_000]

const rules: fc.Arbitrary<Rule[]> = fc
  .array(
    fc.record({
      limit: fc.integer({ min: 1, max: 12 }),
      window: fc.constantFrom(...WINDOWS_MS),
      field: fc.constantFrom("service", "query:client"),
      algorithm: fc.constantFrom("sliding-window", "fixed-window"),
      cost: fc.integer({ min: 1, max: 3 }),
      shadow: fc.integer({ min: 0, max: 5 }).map((roll) => roll === 0),
    }),
    { minLength: 1, maxLength: 4 },
  )
  .map((list) =>
    list.map((rule, i): Rule => ({ ...rule, name: `r${i}`, cost: Math.min(rule.cost, rule.limit) })),
  )

const stories: fc.Arbitrary<Story> = fc.record({
  rules,
  offsetMs: fc.nat(60_000),
  steps: fc.array(
    fc.record({
      afterMs: fc.oneof(
        fc.constantFrom(0, 0, 0, 1, 9, 10, 11, 999, 1_000, 60_000, 120_000),
        fc.nat(30),
        fc.nat(2_000),
        fc.nat(90_000),
      ),
      cost: fc.oneof(fc.constantFrom(1, 1, 1, 0), fc.nat(12)),
      client: fc.nat(1),
    }),
    { minLength: 1, maxLength: 40 },
  ),
})

/** Returns the request of a client. Clients share only the counters of the whole service. */
const request = (client: number) => ({ query: { client } })

/**
 * An exact log of the units taken under every rule, by partition. The exact log decides by the definitions of the
 * algorithms, in integers of any size. This log shares no code with the limiter.
 */
class ExactLog {
  readonly #taken: { rule: string; partition: number; atMs: number; units: number }[] = []

  fits(
    { name, field, limit, window, algorithm }: Rule,
    client: number,
    units: number,
    nowMs: number,
  ): boolean {
    if (units === 0) return true
    const windowMs = window as number
    const start = nowMs - (nowMs % windowMs)
    const partition = field === "service" ? -1 : client
    const between = (from: number, to: number) =>
      this.#taken
        .filter(
          (one) => one.rule === name && one.partition === partition && one.atMs >= from && one.atMs < to,
        )
        .reduce((sum, one) => sum + one.units, 0)
    const current = between(start, start + windowMs)
    const previous = algorithm === "fixed-window" ? 0 : between(start - windowMs, start)
    const weighted = (BigInt(previous) * BigInt(windowMs - (nowMs - start))) / BigInt(windowMs)
    return weighted + BigInt(current + units) <= BigInt(limit as number)
  }

  /**
   * Returns the decision on a request. For an admitted request, also returns the names of the shadow rules that would
   * have refused it.
   */
  decide(
    all: readonly Rule[],
    { client, cost }: Step,
    nowMs: number,
  ): { allowed: boolean; shadowed: string[] } {
    const unfit = all.filter((rule) => !this.fits(rule, client, cost * (rule.cost ?? 1), nowMs))
    const allowed = unfit.every(({ shadow }) => shadow)
    if (allowed) {
      for (const rule of all) {
        if (unfit.includes(rule)) continue
        const partition = rule.field === "service" ? -1 : client
        const units = cost * (rule.cost ?? 1)
        this.#taken.push({ rule: rule.name as string, partition, atMs: nowMs, units })
      }
    }
    return { allowed, shadowed: allowed ? unfit.map(({ name }) => name as string) : [] }
  }
}

/** Runs a story and calls `show` at every step. */
async function play(
  { rules: all, offsetMs, steps }: Story,
  show: (moment: {
    limiter: Limiter
    clock: ManualClock
    step: Step
    decision: Decision
  }) => Promise<void> | void,
): Promise<void> {
  const clock = manualClock(Date.UTC(2024, 0, 1) + offsetMs)
  const limiter = createLimiter({ rules: all, clock, logger: { warn() {}, error() {} } })
  for (const step of steps) {
    clock.advance(step.afterMs)
    const decision = await limiter.decide(request(step.client), { cost: step.cost })
    await show({ limiter, clock, step, decision })
  }
  await limiter.close()
}

async function remaining(limiter: Limiter, client: number): Promise<(number | undefined)[]> {
  const { checks } = await limiter.peek(request(client), { cost: 0 })
  return checks.map((check) => check.remaining)
}

const RUNS = { numRuns: 100 }

describe("a limiter with any rules", () => {
  it("admits the same requests as an exact log, and names the shadow rules that would have refused", async () => {
    await fc.assert(
      fc.asyncProperty(stories, async (story) => {
        const log = new ExactLog()
        await play(story, ({ clock, step, decision }) => {
          const expected = log.decide(story.rules, step, clock.now())
          const shadowed = expected.allowed ? decision.shadowed : []
          expect({ allowed: decision.allowed, shadowed }).toEqual(expected)
        })
      }),
      RUNS,
    )
  })

  it("takes no units for a refused request, and each rule's cost for an admitted request", async () => {
    await fc.assert(
      fc.asyncProperty(stories, async ({ rules: all, offsetMs, steps }) => {
        const clock = manualClock(Date.UTC(2024, 0, 1) + offsetMs)
        const limiter = createLimiter({ rules: all, clock, logger: { warn() {}, error() {} } })
        for (const { afterMs, cost, client } of steps) {
          clock.advance(afterMs)
          const before = await remaining(limiter, client)
          const { allowed, shadowed } = await limiter.decide(request(client), { cost })
          const after = await remaining(limiter, client)
          const takes = ({ name }: Rule) => allowed && !shadowed.includes(name as string)
          expect(after).toEqual(
            all.map((rule, i) => (before[i] as number) - (takes(rule) ? cost * (rule.cost ?? 1) : 0)),
          )
        }
      }),
      RUNS,
    )
  })

  it("admits a lone client exactly at the millisecond that it reported", async () => {
    await fc.assert(
      fc.asyncProperty(stories, async (story) => {
        await play(story, async ({ limiter, clock, step, decision }) => {
          const { allowed, retryAfterMs } = decision
          if (allowed) return expect(retryAfterMs).toBe(0)
          const ask = () => limiter.peek(request(step.client), { cost: step.cost })
          const nowMs = clock.now()
          if (retryAfterMs === Number.POSITIVE_INFINITY) {
            clock.advance(10_000_000)
            expect((await ask()).allowed).toBe(false)
          } else {
            expect(retryAfterMs).toBeGreaterThan(0)
            clock.advance(retryAfterMs - 1)
            expect((await ask()).allowed).toBe(false)
            clock.advance(1)
            expect((await ask()).allowed).toBe(true)
          }
          clock.set(nowMs)
        })
      }),
      RUNS,
    )
  })

  it("admits exactly as many further requests of a lone client as it reported", async () => {
    await fc.assert(
      fc.asyncProperty(stories, async (story) => {
        const { steps, ...rest } = story
        const last = steps.length - 1
        let index = 0
        await play({ ...rest, steps }, async ({ limiter, step, decision }) => {
          if (index++ < last || !decision.allowed || decision.policy === "") return
          const each = decision.checks.find(({ policy }) => policy === decision.policy)?.cost as number
          if (each === 0) return
          const more = Math.floor(decision.remaining / each)
          for (let i = 0; i < more; i++) {
            expect((await limiter.decide(request(step.client), { cost: step.cost })).allowed).toBe(true)
          }
          const over = await limiter.decide(request(step.client), { cost: step.cost })
          expect(over.allowed).toBe(false)
        })
      }),
      RUNS,
    )
  })

  it("grants the full limit exactly at the reported reset time", async () => {
    await fc.assert(
      fc.asyncProperty(stories, async (story) => {
        await play(story, async ({ limiter, clock, step, decision }) => {
          const nowMs = clock.now()
          for (const { policy, limit, resetAfterMs, counts } of decision.checks) {
            if (counts === undefined) continue
            const left = async () => {
              const { checks } = await limiter.peek(request(step.client), { cost: 0 })
              return checks.find((check) => check.policy === policy)?.remaining
            }
            clock.set(nowMs + resetAfterMs)
            expect(await left()).toBe(limit)
            if (resetAfterMs > 0) {
              clock.set(nowMs + resetAfterMs - 1)
              expect(await left()).toBeLessThan(limit)
            }
          }
          clock.set(nowMs)
        })
      }),
      { numRuns: 50 },
    )
  })

  it("has the same remaining units as before if a request's units are refunded immediately", async () => {
    await fc.assert(
      fc.asyncProperty(stories, async (story) => {
        await play(story, async ({ limiter, step }) => {
          const before = await remaining(limiter, step.client)
          await limiter.refund(await limiter.decide(request(step.client), { cost: step.cost }))
          expect(await remaining(limiter, step.client)).toEqual(before)
        })
      }),
      { numRuns: 50 },
    )
  })
})
