import { type Clock, createLimiter, type Store } from "@sluice/core"
import { manualClock } from "@sluice/core/testing"
import { rateLimit } from "@sluice/fetch"
import { redisStore } from "@sluice/redis"
import { leasedStore, mirroredStore, writeBackStore } from "@sluice/scale"
import { describe, expect, it } from "vitest"
import { redisForTests } from "./servers/redis-for-tests.ts"

// Rules whose window is a function, in responses and in stores in front of Redis.

const { client } = await redisForTests()
const request = { remoteAddress: "192.0.2.7" }

it("a response states the window that the function returned for its own request", async () => {
  const limit = rateLimit({
    ...{ name: "plan", limit: 1, clientAddress: () => "192.0.2.7", clock: manualClock() },
    window: ({ headers }) => headers.get("x-plan") ?? "1 minute",
  })
  const get = limit.wrap(() => new Response("hello"))
  const told: unknown[] = []
  for (const plan of ["1 minute", "1 hour", "1 minute", "1 hour"]) {
    const { status, headers } = await get(
      new Request("http://localhost/", { headers: { "x-plan": plan } }),
      undefined,
    )
    told.push([status, headers.get("ratelimit-policy"), headers.get("retry-after")])
  }
  expect(told).toEqual([
    [200, '"plan";q=1;w=60', null],
    [200, '"plan";q=1;w=3600', null],
    [429, '"plan";q=1;w=60', "61"],
    [429, '"plan";q=1;w=3600', "3601"],
  ])
})

describe("each window of a client has its own units", () => {
  it.each<[string, (open: (part: string) => Store, clock: Clock) => Store]>([
    ["a leased store", (open, clock) => leasedStore(open("near"), { clock })],
    ["a write-back store", (open, clock) => writeBackStore(open("near"), { clock })],
    ["a mirrored store", (open) => mirroredStore({ near: open("near"), far: { eu: open("far") } })],
  ])("in %s, and in the store behind it", async (name, storeOf) => {
    const clock = manualClock()
    const open = (part: string) =>
      redisStore({ client, clock, prefix: `windows ${name} ${part}:`, timeoutMs: 20_000 })
    let window = "1 minute"
    const limiterWith = (store: Store) =>
      createLimiter({
        ...{ service: "s", name: "plan", field: "ip", limit: 100, algorithm: "fixed-window" },
        ...{ window: () => window, store, clock, storeTimeoutMs: 20_000 },
      })
    const store = storeOf(open, clock)
    const limiter = limiterWith(store)
    const admitted = { "1 minute": 0, "1 hour": 0 }
    for (let sent = 0; sent < 110; sent++) {
      for (window of ["1 minute", "1 hour"]) {
        if ((await limiter.decide(request)).allowed) admitted[window as keyof typeof admitted] += 1
      }
    }
    expect(admitted).toEqual({ "1 minute": 100, "1 hour": 100 })
    window = "1 minute"
    clock.advance("1 minute")
    const ofMinute = await limiter.decide(request, { cost: 40 })
    window = "1 hour"
    expect((await limiter.decide(request)).allowed).toBe(false)
    // The refund is for the minute in which the units were taken.
    await limiter.refund(ofMinute)
    expect((await limiter.decide(request)).allowed).toBe(false)
    window = "1 minute"
    expect((await limiter.decide(request, { cost: 30 })).remaining).toBe(70)
    await limiter.close()
    await store.close()

    for (const part of name === "a mirrored store" ? ["near", "far"] : ["near"]) {
      const behind = limiterWith(open(part))
      const left: number[] = []
      for (window of ["1 minute", "1 hour"]) left.push((await behind.peek(request)).remaining)
      expect(left).toEqual([70, 0])
      await behind.close()
    }
  })
})
