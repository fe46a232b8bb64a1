import { inspect } from "node:util"
import { liveRules } from "@sluice/rules"
import { describe, expect, it } from "vitest"
import { manualClock } from "../ground/manual-clock.ts"
import type { RequestFacts } from "../request/request.ts"
import { memoryStore } from "../stores/memory/memory-store.ts"
import type { Store, StoreResult } from "../stores/store.ts"
import { methodsOf } from "../stores/testing/methods-of.ts"
import { createLimiter } from "./create-limiter.ts"

const ALICE: RequestFacts = { remoteAddress: "192.0.2.1" }

describe("the status of a limiter", () => {
  it("contains the service, and no breakers if the store has none", () => {
    const limiter = createLimiter({ limit: 1, window: "1 minute", service: "shop" })
    expect(limiter.status).toStrictEqual({ service: "shop", waiting: 0, inFlight: 0 })
    expect(createLimiter({ limit: 1, window: "1 minute" }).status.service).toBe("default")
  })

  it("contains the breakers that the store reports as open", () => {
    const store = Object.assign(memoryStore(), { status: { openBreakers: 2 } })
    const limiter = createLimiter({ limit: 1, window: "1 minute", store })
    expect(limiter.status.openBreakers).toBe(2)
    store.status.openBreakers = 0
    expect(limiter.status.openBreakers).toBe(0)
  })

  it("says whether other processes may use the same counters", () => {
    const shared = Object.assign(memoryStore(), { isShared: true })
    const limiter = createLimiter({ limit: 1, window: "1 minute", store: shared as never, service: "shop" })
    expect(limiter.status).toStrictEqual({ service: "shop", waiting: 0, inFlight: 0, isShared: true })
  })

  it("contains the leases, mirrors and write-back that the store reports", () => {
    const leases = { held: 3, heldOff: 0, granted: 9, booked: 5, returned: 1, lost: 0 }
    const writeBack = { lost: 2, failingMs: 50 }
    const status: Store["status"] = { leases, mirrors: { "eu-west": writeBack }, writeBack }
    const store = Object.assign(memoryStore(), { status })
    const limiter = createLimiter({ limit: 1, window: "1 minute", store })
    expect(limiter.status).toStrictEqual({ service: "default", waiting: 0, inFlight: 0, ...status })
  })

  it("counts the waiting requests until each is decided or gives up", async () => {
    const clock = manualClock()
    const limiter = createLimiter({ limit: 1, window: "1 second", algorithm: "fixed-window", clock })
    const gaveUp = new AbortController()
    await limiter.acquire(ALICE)
    const second = limiter.acquire(ALICE)
    const third = limiter.acquire(ALICE, { signal: gaveUp.signal })
    expect(limiter.status.waiting).toBe(2)
    gaveUp.abort(new Error("enough"))
    await expect(third).rejects.toThrow("enough")
    expect(limiter.status.waiting).toBe(1)
    clock.advance(1_000)
    await second
    expect(limiter.status.waiting).toBe(0)
  })
})

describe("a limiter", () => {
  function watchedStore() {
    const store = memoryStore()
    const listening = new Set<unknown>()
    const subscribe: Store["subscribe"] = (listener) => {
      listening.add(listener)
      return () => void listening.delete(listener)
    }
    return { listening, store: Object.assign(store, { subscribe }) }
  }

  it("listens to its store until it is closed", async () => {
    const { listening, store } = watchedStore()
    const limiter = createLimiter({ limit: 1, window: "1 minute", store })
    expect(listening.size).toBe(1)
    await limiter.close()
    expect(listening.size).toBe(0)
  })

  it("does not listen to its store if it cannot be created", () => {
    const { listening, store } = watchedStore()
    const make = () => createLimiter({ name: "taken", limit: 1, window: "1 minute", store })
    make()
    expect(make).toThrow("another limiter")
    expect(listening.size).toBe(1)
  })
})

describe("the close event of a limiter", () => {
  it("is emitted once, as the last event", async () => {
    const limiter = createLimiter({ limit: 1, window: "1 minute" })
    const told: string[] = []
    limiter.on("decision", () => void told.push("decision"))
    limiter.on("closed", () => void told.push("closed"))
    await limiter.decide(ALICE)
    await limiter.close()
    await limiter.close()
    expect(told).toEqual(["decision", "closed"])
  })

  it("is the last event even if the store responds after the limiter was closed", async () => {
    const told: string[] = []
    let answer = (_answer: StoreResult): void => undefined
    const answers = new Promise<StoreResult>((resolve) => {
      answer = resolve
    })
    const memory = memoryStore()
    const store: Store = { ...methodsOf(memory), take: () => answers }
    const limiter = createLimiter({
      limit: 1,
      window: "1 minute",
      store,
      service: "a",
      storeTimeoutMs: 60_000,
    })
    limiter.on("decision", () => void told.push("decision"))
    limiter.on("closed", () => void told.push("closed"))
    const decided = limiter.decide(ALICE)
    await limiter.close()
    answer({ nowMs: 0, granted: false, checks: [] })
    await decided
    expect(told).toEqual(["closed"])
  })
})

describe("the status of rules", () => {
  it("redacts passwords in the problems of a custom source", async () => {
    const message = "redis://user:S3cret@host cannot be read"
    const limiter = createLimiter({
      rules: liveRules({
        load: async () => ({
          rules: [{ limit: 5, window: "1m", field: "ip" }],
          problems: [{ path: "", message }],
        }),
      }),
      onRulesMissing: "allow",
      logger: { warn: () => undefined, error: () => undefined },
    })
    await limiter.ready().catch(() => undefined)
    expect(inspect(limiter.rules, { depth: 9, showHidden: true })).toContain("redis://…@host cannot be read")
    expect(inspect(limiter.rules, { depth: 9, showHidden: true })).not.toContain("S3cret")
    await limiter.close()
  })
})
