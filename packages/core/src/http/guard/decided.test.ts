import { EventEmitter } from "node:events"
import { describe, expect, it } from "vitest"
import { StoreUnavailableError } from "../../ground/errors.ts"
import { manualClock } from "../../ground/manual-clock.ts"
import { createLimiter } from "../../limiter/create-limiter.ts"
import { decideAll } from "../../limiter/decide-all.ts"
import { memoryStore } from "../../stores/memory/memory-store.ts"
import { laterStore } from "../../stores/testing/later-store.ts"
import { methodsOf } from "../../stores/testing/methods-of.ts"
import { createGuard } from "./create-guard.ts"

const CLIENT = { remoteAddress: "192.0.2.1" }
const QUIET = { warn() {}, error() {} }

function open(more: object = {}) {
  const limiter = createLimiter({
    name: "calls",
    limit: 2,
    window: "1 minute",
    clock: manualClock(),
    logger: QUIET,
    ...more,
  })
  const heard: string[] = []
  limiter.on("decided", ({ allowed, policy }, counters) => {
    const partitions = counters.map(({ partition }) => partition).join()
    heard.push(`${policy} ${partitions} ${allowed ? "admits" : "refuses"}`)
  })
  return { limiter, heard }
}

describe('the event "decided"', () => {
  it("is emitted once for each decision of each call, with the counters, and for no peek", async () => {
    const { limiter, heard } = open()
    await limiter.decide(CLIENT)
    await limiter.peek(CLIENT)
    await limiter.takeUpTo(CLIENT, 5)
    await limiter.acquire(CLIENT, { maxWaitMs: 0 }).catch(() => undefined)
    await decideAll([{ limiter, request: CLIENT }])
    expect(heard).toEqual([
      "calls 192.0.2.1 admits",
      "calls 192.0.2.1 admits",
      "calls 192.0.2.1 refuses",
      "calls 192.0.2.1 refuses",
    ])
  })

  it.each(["hard", { kind: "queue", maxWaitMs: 1 }] as const)(
    "is emitted for a guard whose rule throttles by %o, and whose store responds later",
    async (throttle) => {
      for (const store of [memoryStore(), laterStore()]) {
        const { limiter, heard } = open({ store, throttle, limit: 1 })
        const guard = createGuard({ limiter })
        await guard.check(CLIENT, {})
        await guard.check(CLIENT, {})
        expect(heard).toEqual(["calls 192.0.2.1 admits", "calls 192.0.2.1 refuses"])
        await limiter.close()
      }
    },
  )

  it("is emitted for the rule of a route", async () => {
    const { limiter, heard } = open()
    const guard = createGuard({ limiter })
    await guard
      .forRoute({ limit: 1, window: "1 minute", name: "login" }, { label: "login" })
      .check(CLIENT, {})
    expect(heard).toEqual(["login 192.0.2.1 admits"])
  })

  it("is emitted once for each step, even if the store fails before a step that queues", async () => {
    const take = () => Promise.reject(new StoreUnavailableError("gone"))
    const rules = [
      { name: "calls", field: "ip", limit: 2, window: "1 minute" },
      { name: "users", field: "body:user", limit: 2, window: "1 minute", throttle: { kind: "queue" } },
    ]
    const store = { ...methodsOf(memoryStore()), take }
    const { limiter, heard } = open({ name: undefined, limit: undefined, window: undefined, rules, store })
    const guard = createGuard({ limiter })
    const [request, response] = [{}, new EventEmitter()]
    for (const step of guard.steps)
      await guard.check({ ...CLIENT, body: { user: "bob" } }, request, response, step)
    expect(heard).toEqual(["calls 192.0.2.1 admits", "users bob admits"])
  })

  it("is not emitted for a request that is skipped, and does not need the event decision", async () => {
    const { limiter, heard } = open({ skip: () => true })
    await limiter.decide(CLIENT)
    expect(heard).toEqual([])
  })

  it("does not fail a request whose listener throws or rejects, and warns once", async () => {
    const { limiter } = open()
    const warnings: string[] = []
    limiter.on("warning", ({ message }) => warnings.push(message))
    limiter.on("decided", () => {
      throw new Error("no room")
    })
    limiter.on("decided", async () => Promise.reject(new Error("no room")))
    expect((await limiter.decide(CLIENT)).allowed).toBe(true)
    expect((await limiter.decide(CLIENT)).allowed).toBe(true)
    expect(warnings).toEqual([
      'A listener of "decided" failed: Error: no room. Handle the error in the listener.',
    ])
  })
})
