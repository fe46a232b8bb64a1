import { describe, expect, it } from "vitest"
import { manualClock } from "../ground/manual-clock.ts"
import type { RequestFacts } from "../request/request.ts"
import { memoryStore } from "../stores/memory/memory-store.ts"
import { methodsOf } from "../stores/testing/methods-of.ts"
import { createLimiter } from "./create-limiter.ts"

const RULE = { limit: 1, window: "1 minute" } as const
const ALICE: RequestFacts = { remoteAddress: "192.0.2.1" }

describe("resetAll() of a clock", () => {
  it("deletes the counters of all limiters on the clock, and sets the clock to its first time", async () => {
    const clock = manualClock(5_000)
    const store = memoryStore()
    const limiters = [
      createLimiter({ ...RULE, clock }),
      createLimiter({ ...RULE, clock, store }),
      createLimiter({ ...RULE, name: "login", algorithm: "sliding-log", clock, store }),
    ]
    const other = createLimiter({ ...RULE, clock: manualClock() })
    const allowed = () =>
      Promise.all([...limiters, other].map(async (limiter) => (await limiter.decide(ALICE)).allowed))
    expect(await allowed()).toEqual([true, true, true, true])
    clock.advance(1_000)
    clock.resetAll()
    expect([clock.now(), store.size]).toEqual([5_000, 0])
    expect(await allowed()).toEqual([true, true, true, false])
    expect(await allowed()).toEqual([false, false, false, false])
  })

  it("ends blocks, and reports clients near their limit again", async () => {
    const clock = manualClock()
    const limiter = createLimiter({ ...RULE, notify: [100], clock })
    const reported: number[] = []
    limiter.on("near-limit", ({ threshold }) => reported.push(threshold))
    await limiter.block(ALICE, { for: "1 minute" })
    expect((await limiter.decide(ALICE)).refusal).toBe("blocked")
    clock.resetAll()
    expect((await limiter.decide(ALICE)).allowed).toBe(true)
    clock.resetAll()
    expect((await limiter.decide(ALICE)).allowed).toBe(true)
    expect(reported).toEqual([100, 100])
  })

  it("throws if a limiter on the clock does not count in memory, until that limiter is closed", async () => {
    const clock = manualClock()
    const shared = { ...methodsOf(memoryStore({ clock })), isShared: true }
    const disabled = createLimiter({ ...RULE, clock, store: shared, enabled: false })
    clock.resetAll()
    const limiter = createLimiter({ ...RULE, service: "shop", clock, store: shared })
    expect(() => clock.resetAll()).toThrow(
      "is not a store that resetAll() of a clock can empty; " +
        "accepted: memoryStore() in tests, or a store with another prefix or table for each test",
    )
    await limiter.close()
    await disabled.close()
    expect(() => clock.resetAll()).not.toThrow()
  })

  it("resets the other limiters, too, if the store of one cannot be emptied", async () => {
    const clock = manualClock()
    createLimiter({ ...RULE, clock, store: methodsOf(memoryStore()) })
    const limiter = createLimiter({ ...RULE, clock })
    await limiter.decide(ALICE)
    expect(() => clock.resetAll()).toThrow("is not a store that resetAll() of a clock can empty")
    expect((await limiter.decide(ALICE)).allowed).toBe(true)
  })
})
