import { setImmediate as nextTurn } from "node:timers/promises"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { type Decision, RateLimitExceededError } from "../decision/decision.ts"
import { manualClock } from "../ground/manual-clock.ts"
import type { RequestFacts } from "../request/request.ts"
import { memoryStore } from "../stores/memory/memory-store.ts"
import type { Store } from "../stores/store.ts"
import { countingStore } from "../stores/testing/counting-store.ts"
import { methodsOf } from "../stores/testing/methods-of.ts"
import { createLimiter } from "./create-limiter.ts"

const QUIET = { warn() {}, error() {} }
const ALICE: RequestFacts = { remoteAddress: "192.0.2.1" }

/** Returns a limiter of `concurrent` requests at a time, with a clock that stands still. */
function limiterOf(concurrent: number, change: (store: Store) => Partial<Store> = () => ({})) {
  const clock = manualClock()
  const { store, calls } = countingStore(memoryStore({ clock }))
  const limiter = createLimiter({
    rules: [{ name: "in-flight", field: "ip", concurrent }],
    ...{ clock, logger: QUIET, storeTimeoutMs: 20, store: { ...methodsOf(store), ...change(store) } },
  })
  return { clock, limiter, calls }
}

describe("run", () => {
  it("lets each work begin when an earlier one has ended, by priority and then in order", async () => {
    const { limiter, calls } = limiterOf(2)
    const log: string[] = []
    const ends = new Map<string, () => void>()
    const run = (name: string, priority?: number) =>
      limiter.run(
        ALICE,
        async () => {
          log.push(name)
          await new Promise<void>((resolve) => ends.set(name, resolve))
          return `${name} is done`
        },
        { priority },
      )
    const all = [run("a"), run("b"), run("c"), run("d"), run("urgent", 1)]
    for (const name of ["b", "a", "urgent", "c", "d"]) {
      await nextTurn()
      log.push(`${name} ends`)
      ends.get(name)?.()
    }
    expect(await Promise.all(all)).toEqual(["a", "b", "c", "d", "urgent"].map((name) => `${name} is done`))
    expect(log).toEqual(["a", "b", "b ends", "urgent", "a ends", "c", "urgent ends", "d", "c ends", "d ends"])
    expect(calls.returned).toBe(5)
    expect((await limiter.peek(ALICE)).remaining).toBe(2)
  })

  it("releases the permit before it returns, or rejects with what the work throws", async () => {
    const { limiter } = limiterOf(1)
    for (let i = 0; i < 10; i++) {
      expect(await limiter.run(ALICE, () => i, { maxWaitMs: 0 })).toBe(i)
      const fails = [
        () => Promise.reject(new Error(`late ${i}`)),
        () => {
          throw new Error(`early ${i}`)
        },
      ]
      for (const [index, work] of fails.entries())
        await expect(limiter.run(ALICE, work, { maxWaitMs: 0 })).rejects.toThrow(
          `${["late", "early"][index]} ${i}`,
        )
    }
  })

  it("does not call the work if the request is refused, and then releases nothing", async () => {
    const { limiter, calls } = limiterOf(1)
    const work = () => expect.unreachable("it is called")
    await limiter.run(ALICE, async () => {
      const refused = limiter.run(ALICE, work, { maxWaitMs: 0 })
      await expect(refused).rejects.toThrow(RateLimitExceededError)
      const signal = AbortSignal.abort(new Error("gone"))
      await expect(limiter.run(ALICE, work, { signal })).rejects.toThrow("gone")
    })
    expect(calls.returned).toBe(1)
  })

  it.each([
    ["fails", () => Promise.reject(new Error("broken"))],
    ["never settles", () => new Promise<never>(() => undefined)],
  ])(
    "returns what the work returns, also if the release %s",
    async (_how, refund) => {
      const { limiter } = limiterOf(1, () => ({ refund }))
      expect(await limiter.run(ALICE, () => 42)).toBe(42)
      const { limiter: failing } = limiterOf(1, () => ({ refund }))
      await expect(failing.run(ALICE, () => Promise.reject(new Error("work")))).rejects.toThrow("work")
    },
    5_000,
  )

  it("returns what the work returns, also if the limiter was closed in the meantime", async () => {
    const { limiter } = limiterOf(1)
    const made = await limiter.run(ALICE, async () => {
      await limiter.close()
      return 42
    })
    expect(made).toBe(42)
  })

  it("waits until the store has confirmed the release, at most storeTimeoutMs", async () => {
    let confirm = () => {}
    const { limiter } = limiterOf(1, (store) => ({
      refund: async (refunds) => {
        await new Promise<void>((resolve) => {
          confirm = resolve
        })
        await store.refund(refunds)
      },
    }))
    let isOver = false
    const running = limiter
      .run(ALICE, () => 1)
      .finally(() => {
        isOver = true
      })
    await nextTurn()
    expect(isOver).toBe(false)
    confirm()
    await running
    expect((await limiter.peek(ALICE)).remaining).toBe(1)
  })

  it("lets works run one after the other within the process while the store is unavailable", async () => {
    const down = () => Promise.reject(new Error("down"))
    const { limiter } = limiterOf(1, () => ({ take: down, read: down, refund: down }))
    let running = 0
    const work = async ({ degraded }: Decision) => {
      running++
      await nextTurn()
      return [degraded, running--]
    }
    const runs = ["a", "b", "c"].map(() => limiter.run(ALICE, work))
    expect(await Promise.all(runs)).toEqual([1, 2, 3].map(() => [true, 1]))
  })

  it("releases nothing if no rule limits the requests at a time, so the units stay taken", async () => {
    const { store, calls } = countingStore(memoryStore())
    const limiter = createLimiter({ limit: 5, window: "1 minute", store })
    expect(await limiter.run(ALICE, ({ remaining }) => remaining, { cost: 2 })).toBe(3)
    expect(calls).toEqual({ takes: 1, reads: 0, returned: 0 })
  })

  it("rejects anything but a function as work, before it takes units", async () => {
    const limiter = createLimiter({ limit: 5, window: "1 minute" })
    const accepted = "(decision) => …"
    for (const [work, message] of [
      [undefined, "is missing"],
      [5, "5 is not a function"],
    ] as const) {
      await expect(limiter.run(ALICE, work as never)).rejects.toMatchObject({
        problems: [{ path: "work", message, accepted }],
      })
    }
    expect((await limiter.peek(ALICE)).remaining).toBe(5)
  })
})

it("run never lets more work run at a time than the rules allow, and leaves no permits", async () => {
  const jobs = fc.array(
    fc.record({
      client: fc.constantFrom("192.0.2.1", "192.0.2.2"),
      priority: fc.constantFrom(0, 0, 1, -1),
      lastsMs: fc.constantFrom(0, 1, 7, 40, 150),
      pauseMs: fc.constantFrom(0, 0, 3, 60),
      maxWaitMs: fc.constantFrom(Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY, 0, 30, 200),
      leavesMs: fc.option(fc.integer({ min: 1, max: 200 }), { nil: undefined, freq: 4 }),
    }),
    { minLength: 5, maxLength: 25 },
  )
  await fc.assert(
    fc.asyncProperty(jobs, async (all) => {
      const clock = manualClock()
      const limiter = createLimiter({
        rules: [
          { name: "own", field: "ip", concurrent: 2 },
          { name: "all", field: "service", concurrent: 3 },
          { name: "rate", field: "ip", limit: 4, window: "200 ms", algorithm: "fixed-window" },
        ],
        ...{ clock, logger: QUIET },
      })
      const running = new Map<string, number>()
      const count = (client: string, more: number) => {
        for (const key of [client, "all"]) running.set(key, (running.get(key) ?? 0) + more)
        expect(running.get(client)).toBeLessThanOrEqual(2)
        expect(running.get("all")).toBeLessThanOrEqual(3)
      }
      const pass = async (ms: number) => {
        for (let passed = 0; passed < ms; passed++) {
          clock.advance(1)
          await nextTurn()
        }
      }
      let open = all.length
      const begun = new Set<number>()
      for (const [i, { client, priority, lastsMs, pauseMs, maxWaitMs, leavesMs }] of all.entries()) {
        const leaving = new AbortController()
        if (leavesMs !== undefined) void clock.wait(leavesMs).then(() => leaving.abort(new Error("left")))
        const work = async () => {
          begun.add(i)
          count(client, 1)
          await clock.wait(lastsMs)
          count(client, -1)
        }
        const options = { priority, maxWaitMs, signal: leaving.signal }
        void limiter
          .run({ remoteAddress: client }, work, options)
          .catch((error: Error) => {
            const isRefused = error instanceof RateLimitExceededError && maxWaitMs < Number.POSITIVE_INFINITY
            expect(isRefused || error.message === "left", error.message).toBe(true)
          })
          .finally(() => open--)
        await pass(pauseMs)
      }
      for (let steps = 0; open > 0; steps++) {
        expect(steps, "each request is served or refused").toBeLessThan(10_000)
        await pass(1)
      }
      await nextTurn()
      for (const [i, { maxWaitMs, leavesMs }] of all.entries()) {
        if (maxWaitMs === Number.POSITIVE_INFINITY && leavesMs === undefined) expect(begun.has(i)).toBe(true)
      }
      expect(limiter.status).toMatchObject({ inFlight: 0, waiting: 0 })
      for (const remoteAddress of ["192.0.2.1", "192.0.2.2"]) {
        const { checks } = await limiter.peek({ remoteAddress }, { rules: ["own", "all"] })
        expect(checks.map(({ remaining }) => remaining)).toEqual([2, 3])
      }
    }),
    { numRuns: 30 },
  )
}, 60_000)
