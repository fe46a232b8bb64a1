import { createLimiter, memoryStore, type Store, StoreUnavailableError } from "@sluice/core"
import { manualClock } from "@sluice/core/testing"
import { describe, expect, it } from "vitest"
import { writeBackStore } from "./write-back-store.ts"

const QUIET = { warn() {}, error() {} }
const SETTLE_MS = 100

/** Creates a limiter of 10 a minute for the whole service, on a write-back store. */
function open() {
  const clock = manualClock()
  const memory = memoryStore({ clock })
  const fault: { error: Error | undefined } = { error: undefined }
  const orFail = <Answer>(answer: () => Answer): Answer => {
    if (fault.error !== undefined) throw fault.error
    return answer()
  }
  const shared: Store = {
    isShared: true,
    take: (checks) => orFail(() => memory.take(checks)),
    read: (checks) => orFail(() => memory.read(checks)),
    refund: (refunds) => orFail(() => memory.refund(refunds)),
    reset: (keys) => memory.reset(keys),
    close: () => memory.close(),
  }
  const limiter = createLimiter({
    ...{ service: "shop", limit: 10, window: "1 minute", algorithm: "fixed-window", field: "service" },
    ...{ store: writeBackStore(shared, { clock }), clock, logger: QUIET },
  } as const)
  const events: string[] = []
  limiter.on("degraded", () => events.push("degraded"))
  limiter.on("recovered", () => events.push("recovered"))
  limiter.on("charges-lost", ({ units }) => events.push(`${units} lost`))
  const pass = async (ms = SETTLE_MS): Promise<void> => {
    clock.advance(ms)
    for (let i = 0; i < 40; i++) await undefined
  }
  return { clock, memory, fault, limiter, events, pass }
}

describe("a limiter on a write-back store", () => {
  it("is degraded after three settlements without a reply, and does not use its own fallback", async () => {
    const { fault, limiter, events, pass } = open()
    const warnings: string[] = []
    limiter.on("warning", ({ message }) => warnings.push(message))
    await limiter.decide({}, { cost: 6 })
    fault.error = new StoreUnavailableError("gone", { outcome: "not-applied" })
    const ledger: unknown[] = []
    for (let i = 0; i < 5; i++) {
      const { allowed, degraded, remaining } = await limiter.decide({})
      ledger.push([allowed, degraded, remaining])
      await pass()
    }
    expect(ledger).toEqual([
      [true, false, 3],
      [true, false, 2],
      [true, false, 1],
      [true, true, 0],
      [false, true, 0],
    ])
    expect(events).toEqual(["degraded"])
    expect(warnings).toEqual([
      "The store decided without the shared counters: gone.\nUntil the store responds again, " +
        "each process admits the remaining units that it knew of, and in each later window the limit or its share.",
    ])
    // The whole limit is available again in the next window.
    await pass(60_000)
    expect(await limiter.decide({})).toMatchObject({ allowed: true, degraded: true, remaining: 9 })
  })

  it("has recovered when settlements have succeeded for ten seconds", async () => {
    const { memory, fault, limiter, events, pass } = open()
    fault.error = new StoreUnavailableError("gone", { outcome: "not-applied" })
    for (let i = 0; i < 5; i++) {
      await limiter.decide({})
      await pass()
    }
    fault.error = undefined
    await pass()
    expect((await limiter.decide({})).degraded).toBe(false)
    await pass(9_000)
    await limiter.decide({})
    expect(events).toEqual(["degraded"])
    await pass(1_000)
    await limiter.decide({})
    expect(events).toEqual(["degraded", "recovered"])
    await pass()
    expect(memory.size).toBe(1)
    expect((await limiter.peek({})).remaining).toBe(2)
  })

  it("reports units that the shared counters have not confirmed", async () => {
    const { fault, limiter, events, pass } = open()
    await limiter.decide({}, { cost: 6 })
    fault.error = new StoreUnavailableError("gone")
    await pass()
    expect(events).toEqual(["6 lost"])
    expect(limiter.status.writeBack).toMatchObject({ lost: 6 })
  })
})
