import { get } from "node:http"
import { memoryStore } from "@sluice/core"
import { SluiceStore } from "@sluice/express-rate-limit-store"
import express, { type Response } from "express"
import { MemoryStore, type Options, rateLimit } from "express-rate-limit"
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { infoOn, limitedApp, serve } from "./limited-app.ts"

// The memory store and express-rate-limit both follow a faked Date, so time does not advance unless a test changes
// it.
const START_MS = Date.UTC(2026, 0, 1)
const MINUTE_MS = 60_000

beforeEach(() => void vi.useFakeTimers({ toFake: ["Date"], now: START_MS }))
afterEach(() => void vi.useRealTimers())

function wait(ms: number): void {
  vi.setSystemTime(Date.now() + ms)
}

describe("express-rate-limit on a SluiceStore", () => {
  it("admits the limit, and leaves the headers, the message and req.rateLimit to express-rate-limit", async () => {
    const { ask, logged } = await limitedApp({
      limit: 2,
      standardHeaders: "draft-8",
      message: { slow: "down" },
    })
    const [first, second, third, fourth] = await ask("/", "/", "/", "/")
    expect([first, second, third, fourth].map((answer) => answer?.status)).toEqual([200, 200, 429, 429])
    expect(JSON.parse(first?.text ?? "")).toMatchObject({ limit: 2, used: 1, remaining: 1, key: "127.0.0.1" })
    expect(JSON.parse(second?.text ?? "")).toMatchObject({ used: 2, remaining: 0 })
    expect(first?.headers.get("ratelimit")).toBe('"2-in-1min"; r=1; t=61')
    expect(third?.headers.get("ratelimit")).toBe('"2-in-1min"; r=0; t=61')
    expect(third?.headers.get("x-ratelimit-limit")).toBe("2")
    expect(third?.headers.get("x-ratelimit-remaining")).toBe("0")
    expect(third?.headers.get("retry-after")).toBe("61")
    expect(third?.text).toBe('{"slow":"down"}')
    expect(logged).toEqual([])
  })

  it("awaits asynchronous options, and counts by the key that they return", async () => {
    const later = async <Value>(value: Value): Promise<Value> => value
    const { ask } = await limitedApp({
      limit: 1,
      keyGenerator: (req) => later(String(req.query.user)),
      skip: (req) => later(req.path === "/health"),
      message: () => later("later"),
      handler: async (_req, res, _next, { statusCode }) => void res.status(statusCode + 1).end(),
    })
    const answers = await ask("/?user=ann", "/?user=bob", "/?user=ann", "/health?user=ann")
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 430, 200])
  })

  it("slides its window, so that the limit cannot be used twice around the end of a window", async () => {
    const { statuses } = await limitedApp({ limit: 10 })
    const old = await serve(express().use(rateLimit({ limit: 10, store: new MemoryStore() }), ok))
    expect([await count200(statuses, 1), await count200(old.statuses, 1)]).toEqual([1, 1])
    wait(MINUTE_MS - 100)
    expect([await count200(statuses, 10), await count200(old.statuses, 10)]).toEqual([9, 9])
    wait(200)
    expect([await count200(statuses, 10), await count200(old.statuses, 10)]).toEqual([1, 10])
  })

  it.each([
    ["sliding-window", {}],
    ["sliding-window-strict", { algorithm: "sliding-window-strict", buckets: 6 }],
    ["sliding-log", { algorithm: "sliding-log" }],
    ["fixed-window", { algorithm: "fixed-window", align: "first-hit" }],
    ["token-bucket", { algorithm: "token-bucket", burst: 5 }],
  ] as const)("admits a refused client at its resetTime, and no sooner: %s", async (_name, counting) => {
    const { store } = await limitedApp({ limit: 3 }, counting)
    const hit = async () => {
      const { totalHits, resetTime } = await store.increment("ann")
      return { isAdmitted: totalHits <= 3, waitMs: (resetTime?.getTime() ?? 0) - Date.now() }
    }
    for (let round = 0; round < 3; round++) {
      let last = await hit()
      while (last.isAdmitted) {
        wait(700)
        last = await hit()
      }
      // The current time is rounded up to a whole millisecond.
      wait(last.waitMs - 2)
      expect((await hit()).isAdmitted).toBe(false)
      wait(1)
      expect((await hit()).isAdmitted).toBe(true)
    }
  })

  it("reports how many hits are left, and when all hits are available again", async () => {
    const { store } = await limitedApp({ limit: 5 })
    for (const totalHits of [1, 2, 3]) expect(await store.increment("ann")).toMatchObject({ totalHits })
    const { resetTime } = await store.increment("ann")
    vi.setSystemTime((resetTime?.getTime() ?? 0) - 1)
    expect(await store.get("ann")).toMatchObject({ totalHits: 1 })
    wait(1)
    expect(await store.get("ann")).toBeUndefined()
  })

  it("reports when the next hit is admitted if no hit is left", async () => {
    const { store } = await limitedApp({ limit: 1 })
    const { resetTime } = await store.increment("ann")
    expect(await store.get("ann")).toEqual({ totalHits: 1, resetTime })
    vi.setSystemTime((resetTime?.getTime() ?? 0) - 2)
    expect((await store.increment("ann")).totalHits).toBe(2)
    wait(1)
    expect((await store.increment("ann")).totalHits).toBe(1)
  })

  it("blocks a client that is refused too often", async () => {
    const { statuses, ask } = await limitedApp({ limit: 1 }, { penalty: { refusals: 2, for: "1 hour" } })
    expect(await statuses(3)).toEqual([200, 429, 429])
    const [blocked] = await ask("/")
    expect(blocked?.headers.get("retry-after")).toBe("3601")
  })

  it("counts requests without a key together", async () => {
    const { statuses, logged } = await limitedApp({ limit: 1, keyGenerator: () => undefined as never })
    expect(await statuses(2)).toEqual([200, 429])
    expect(logged).toEqual([])
  })

  it("resets a client, and returns its hits", async () => {
    const { statuses, limit } = await limitedApp({ limit: 2 })
    expect(await limit.getKey("127.0.0.1")).toBeUndefined()
    expect(await statuses(3)).toEqual([200, 200, 429])
    expect(await limit.getKey("127.0.0.1")).toMatchObject({ totalHits: 2 })
    await limit.resetKey("127.0.0.1")
    expect(await limit.getKey("127.0.0.1")).toBeUndefined()
    expect(await statuses(3)).toEqual([200, 200, 429])
  })

  it("exposes the limiter for its events", async () => {
    const { statuses, store } = await limitedApp({ limit: 1 })
    const refused: string[] = []
    store.limiter.on(
      "decision",
      ({ allowed, policy }, key) => void (allowed || refused.push(`${policy}${key}`)),
    )
    await statuses(2)
    expect(refused).toEqual(["rl:127.0.0.1"])
  })
})

describe("a limit that is a function", () => {
  const limit: Options["limit"] = async (req) => (req.query.plan === "pro" ? 3 : 1)

  it("is compared with all hits of the window that began with the client's first hit", async () => {
    const { ask } = await limitedApp({ limit, standardHeaders: "draft-6" })
    wait(1_234)
    const answers = await ask("/", "/", "/?plan=pro", "/?plan=pro", "/")
    expect(answers.map(({ status }) => status)).toEqual([200, 429, 200, 429, 429])
    expect(JSON.parse(answers[2]?.text ?? "")).toMatchObject({ limit: 3, used: 3, remaining: 0 })
    expect(answers.map(({ headers }) => headers.get("ratelimit-reset"))).toEqual(Array(5).fill("60"))
    // A client that keeps sending is admitted in the next window nevertheless.
    wait(MINUTE_MS - 1)
    expect((await ask("/"))[0]?.status).toBe(429)
    wait(1)
    expect((await ask("/", "/")).map(({ status }) => status)).toEqual([200, 429])
  })

  it("can be counted in a sliding window, in which refused hits count", async () => {
    const { ask, store } = await limitedApp({ limit }, { algorithm: "sliding-window" })
    expect((await ask("/", "/", "/")).map(({ status }) => status)).toEqual([200, 429, 429])
    const { totalHits, resetTime } = await store.increment("127.0.0.1")
    expect(totalHits).toBe(4)
    vi.setSystemTime(resetTime as Date)
    expect((await ask("/"))[0]?.status).toBe(200)
  })

  it("does not cause a call of the store beyond the largest limit", async () => {
    const { ask, store } = await limitedApp({ limit }, { largestLimit: 3, instances: 4 })
    const answers = await ask("/?plan=pro", "/?plan=pro", "/?plan=pro", "/?plan=pro", "/?plan=pro")
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 429, 429])
    expect(await store.get("127.0.0.1")).toMatchObject({ totalHits: 3 })
    wait(MINUTE_MS)
    expect((await ask("/?plan=pro"))[0]?.status).toBe(200)
  })

  it("cannot refill a bucket, so each request fails and the log contains the reason", async () => {
    const { ask, logged } = await limitedApp({ limit }, { algorithm: "token-bucket" })
    const why = '"token-bucket" refills by the limit, which is not a number here'
    expect(logged.join()).toContain(why)
    const [answer] = await ask("/")
    expect([answer?.status, answer?.text.includes("token-bucket")]).toEqual([500, true])
  })
})

it.each([
  [0, [429, 429, 429, 429]],
  [-1, [429, 429, 429, 429]],
  [2.5, [200, 200, 429, 429]],
  [Number.NaN, [200, 200, 200, 200]],
  [Number.POSITIVE_INFINITY, [200, 200, 200, 200]],
  [1e300, [200, 200, 200, 200]],
])("a limit of %s means the same as in the store of express-rate-limit", async (limit, expected) => {
  const { statuses } = await limitedApp({ limit })
  expect(await statuses(4)).toEqual(expected)
  const peer = await serve(express().use(rateLimit({ limit, logger: quiet }), ok))
  expect(await peer.statuses(4)).toEqual(expected)
})

describe("undoing hits", () => {
  it("counts only failures with skipSuccessfulRequests", async () => {
    const { ask, store } = await limitedApp({ limit: 2, skipSuccessfulRequests: true })
    const paths = ["/", "/status/401", "/", "/", "/status/401", "/", "/status/401"]
    expect((await ask(...paths)).map(({ status }) => status)).toEqual([200, 401, 200, 200, 401, 429, 429])
    expect(await store.get("127.0.0.1")).toMatchObject({ totalHits: 2 })
  })

  it("refunds the hit of a request that fails after other requests were refused", async () => {
    let fail = (): void => {}
    const { ask, store } = await limitedApp({ limit: 1, skipFailedRequests: true }, {}, (app) =>
      app.get("/slow", (_req, res) => {
        fail = () => void res.status(500).end()
      }),
    )
    const slow = ask("/slow")
    await vi.waitUntil(async () => (await store.get("127.0.0.1")) !== undefined)
    expect((await ask("/", "/")).map(({ status }) => status)).toEqual([429, 429])
    expect(await store.get("127.0.0.1")).toMatchObject({ totalHits: 1 })
    fail()
    expect((await slow)[0]?.status).toBe(500)
    await vi.waitUntil(async () => (await store.get("127.0.0.1")) === undefined)
    expect((await ask("/"))[0]?.status).toBe(200)
  })

  it("refunds exactly the failures of many concurrent requests, in any order of responses and in any async context", async () => {
    const waiting: Response[] = []
    const { ask, store } = await limitedApp({ limit: 20, skipFailedRequests: true }, {}, (app) =>
      app.get("/later", (_req, res) => void waiting.push(res)),
    )
    let refused = 0
    const asked = Array.from({ length: 60 }, async () => {
      const answers = await ask("/later")
      refused += answers[0]?.status === 429 ? 1 : 0
      return answers
    })
    await vi.waitUntil(() => waiting.length === 20 && refused === 40, { timeout: 30_000 })
    for (const [i, res] of waiting.toReversed().entries()) {
      res.status(i % 3 === 0 ? 500 : 200).end()
      if (i % 4 === 0) await new Promise(setImmediate)
    }
    const statuses = (await Promise.all(asked)).map(([answer]) => answer?.status)
    expect([200, 429, 500].map((status) => statuses.filter((each) => each === status).length)).toEqual([
      13, 40, 7,
    ])
    await vi.waitUntil(async () => (await store.get("127.0.0.1"))?.totalHits === 13)
  })

  it("refunds a hit to the window from which it was taken", async () => {
    let fail = (): void => {}
    const { ask, store } = await limitedApp({ limit: 5, skipFailedRequests: true }, {}, (app) =>
      app.get("/slow", (_req, res) => {
        fail = () => void res.status(500).end()
      }),
    )
    const undone = vi.spyOn(store, "decrement")
    await ask("/", "/")
    const slow = ask("/slow")
    await vi.waitUntil(async () => (await store.get("127.0.0.1"))?.totalHits === 3)
    // 60 % of the three hits still count, rounded down.
    wait(1.4 * MINUTE_MS)
    expect(await ask("/")).toMatchObject([{ status: 200 }])
    expect(await store.get("127.0.0.1")).toMatchObject({ totalHits: 2 })
    fail()
    await slow
    await vi.waitUntil(() => undone.mock.settledResults.some(({ type }) => type === "fulfilled"))
    // 60 % of the other two hits still count, rounded down, and the latest hit counts in full.
    expect(await store.get("127.0.0.1")).toMatchObject({ totalHits: 2 })
  })

  it("refunds the hit of a client that hangs up", async () => {
    const { store, url } = await limitedApp({ limit: 1, skipFailedRequests: true }, {}, (app) =>
      app.use(() => {}),
    )
    const request = get(url).on("error", () => {})
    await vi.waitUntil(async () => (await store.get("127.0.0.1")) !== undefined)
    request.destroy()
    await new Promise((resolve) => request.once("close", resolve))
    await vi.waitUntil(async () => (await store.get("127.0.0.1")) === undefined)
  })

  it("happens once for each request, by the app or by express-rate-limit", async () => {
    const { ask, store } = await limitedApp({ limit: 5, skipFailedRequests: true }, {}, (app) =>
      app.get("/undone", async (_req, res) => {
        await store.decrement("127.0.0.1")
        await store.decrement("127.0.0.1")
        res.status(404).end()
      }),
    )
    await ask("/", "/", "/undone")
    expect(await store.get("127.0.0.1")).toMatchObject({ totalHits: 2 })
  })

  it("removes one hit from the count if the app requests it for another client, or outside of a request", async () => {
    const { ask, store } = await limitedApp({ limit: 5, skipFailedRequests: true }, {}, (app) =>
      app.get("/other", async (_req, res) => {
        await store.decrement("bob")
        res.end()
      }),
    )
    for (const key of ["bob", "bob", "bob", "ann"]) await store.limiter.decide(key)
    await ask("/other")
    await store.decrement("bob")
    expect(await store.get("bob")).toMatchObject({ totalHits: 1 })
    for (let n = 0; n < 3; n++) await store.decrement("ann")
    expect(await store.get("ann")).toBeUndefined()
    expect(await store.get("127.0.0.1")).toMatchObject({ totalHits: 1 })
  })

  it("removes one hit from the count even without the skip options", async () => {
    const { ask, store } = await limitedApp({ limit: 5 })
    await ask("/", "/")
    await store.decrement("127.0.0.1")
    expect(await store.get("127.0.0.1")).toMatchObject({ totalHits: 1 })
  })
})

describe("several limiters", () => {
  it("with separate stores each count the same request", async () => {
    const shared = memoryStore()
    const [second, minute] = [
      new SluiceStore({ store: shared, prefix: "second:" }),
      new SluiceStore({ store: shared, prefix: "minute:" }),
    ]
    const { logged, logger } = logging()
    const { statuses } = await serve(
      express().use(
        rateLimit({ limit: 2, windowMs: 1_000, store: second, logger }),
        rateLimit({ limit: 3, windowMs: MINUTE_MS, store: minute, logger }),
        ok,
      ),
    )
    expect(await statuses(3)).toEqual([200, 200, 429])
    wait(2_000)
    expect(await statuses(3)).toEqual([200, 429, 429])
    expect(logged).toEqual([])
    await Promise.all([second.shutdown(), minute.shutdown()])
  })

  it("on one store with different limits count together, and each applies its own limit", async () => {
    const store = new SluiceStore()
    const { logged, logger } = logging()
    const [three, one] = [3, 1].map((limit) => rateLimit({ limit, store, logger, windowMs: MINUTE_MS }))
    const app = express()
    app.get("/three", three as never, ok)
    app.get("/one", one as never, ok)
    const { ask } = await serve(app)
    const paths = ["/one", "/one", "/three", "/three", "/one"]
    expect((await ask(...paths)).map(({ status }) => status)).toEqual([200, 429, 200, 429, 429])
    // express-rate-limit recommends a separate store for each limiter.
    expect(logged.join()).toContain("ERR_ERL_STORE_REUSE")
    expect(logged).toHaveLength(1)
    await store.shutdown()
  })

  it("on one store with the same limit share a sliding window", async () => {
    const store = new SluiceStore()
    const { logger } = logging()
    const limits = [1, 2].map(() => rateLimit({ limit: 1, store, logger, windowMs: MINUTE_MS }))
    const app = express()
    app.get("/a", limits[0] as never, ok)
    app.get("/b", limits[1] as never, ok)
    const { ask } = await serve(app)
    expect((await ask("/a", "/b")).map(({ status }) => status)).toEqual([200, 429])
    wait(MINUTE_MS + 1)
    expect((await ask("/b", "/a")).map(({ status }) => status)).toEqual([200, 429])
    await store.shutdown()
  })

  it("on one store with different windows fail, and the log contains the reason", async () => {
    const store = new SluiceStore()
    const { logged, logger } = logging()
    const limits = [1_000, 2_000].map((windowMs) => rateLimit({ windowMs, store, logger, validate: false }))
    expect(logged.join()).toContain(
      "windowMs: 2000 is not the window of the other limiter with this store, which is 1000",
    )
    for (const limit of limits)
      expect(await (await serve(express().use(limit, ok))).statuses(1)).toEqual([500])
    await store.shutdown()
  })
})

const ok: express.RequestHandler = (req, res) => void res.json(infoOn(req))
const quiet = { warn() {}, error() {} }

function logging() {
  const logged: string[] = []
  const log = (...all: unknown[]): void => void logged.push(all.map(String).join(" "))
  return { logged, logger: { warn: log, error: log } }
}

async function count200(statuses: (n: number) => Promise<number[]>, n: number): Promise<number> {
  return (await statuses(n)).filter((status) => status === 200).length
}
