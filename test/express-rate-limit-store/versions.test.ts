import { SluiceStore, type SluiceStoreOptions } from "@sluice/express-rate-limit-store"
import express from "express"
import { rateLimit } from "express-rate-limit"
import { rateLimit as rateLimit6 } from "express-rate-limit6"
import { rateLimit as rateLimit7 } from "express-rate-limit7"
import { rateLimit as rateLimit82 } from "express-rate-limit82"
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from "vitest"
import { serve } from "./limited-app.ts"

beforeEach(() => void vi.useFakeTimers({ toFake: ["Date"], now: Date.UTC(2026, 0, 1) }))
afterEach(() => void vi.useRealTimers())

const SECOND_MS = 1_000

describe.each([
  ["6.11", rateLimit6, "max"],
  ["7.5", rateLimit7, "limit"],
  ["8.2", rateLimit82, "limit"],
  ["8.7", rateLimit, "limit"],
])("a SluiceStore in express-rate-limit %s", (_version, create, nameOfLimit) => {
  /** Starts an app that responds with the status of the path, such as "/500". */
  async function start(limit: unknown, options: object, counting: SluiceStoreOptions = {}) {
    const store = new SluiceStore(counting)
    onTestFinished(() => store.shutdown())
    const limiter = (create as typeof rateLimit)({ [nameOfLimit]: limit, ...options, store })
    const app = express().use(limiter)
    app.get("/:status", (req, res) => void res.status(Number(req.params.status)).end())
    const { ask } = await serve(app)
    const statuses = async (...paths: readonly string[]) => (await ask(...paths)).map(({ status }) => status)
    return { store, ask, limiter, statuses }
  }

  it("counts in a sliding window, sends correct headers with refusals, and does not count refused hits", async () => {
    const { ask, statuses } = await start(2, { windowMs: 60 * SECOND_MS, standardHeaders: true })
    expect(await statuses("/200", "/200", "/200")).toEqual([200, 200, 429])
    const [refused] = await ask("/200")
    expect(refused?.headers.get("retry-after")).toMatch(/^6[01]$/)
    expect(refused?.headers.get("ratelimit-remaining")).toBe("0")
    vi.setSystemTime(Date.now() + 61 * SECOND_MS)
    expect(await statuses("/200", "/200")).toEqual([200, 429])
  })

  it("refunds failed requests", async () => {
    const { store, statuses } = await start(2, { windowMs: 60 * SECOND_MS, skipFailedRequests: true })
    expect(await statuses("/500", "/200", "/404", "/200", "/200")).toEqual([500, 200, 404, 200, 429])
    expect(await store.get("127.0.0.1")).toMatchObject({ totalHits: 2 })
  })

  it("counts hits for a limit that is a function", async () => {
    const { statuses } = await start(() => 1, { windowMs: 60 * SECOND_MS })
    expect(await statuses("/200", "/200")).toEqual([200, 429])
  })

  it("resets a client", async () => {
    const { limiter, statuses } = await start(1, { windowMs: 60 * SECOND_MS })
    expect(await statuses("/200", "/200")).toEqual([200, 429])
    await limiter.resetKey("127.0.0.1")
    expect(await statuses("/200")).toEqual([200])
  })

  it.each([
    [8.2 * 60 * SECOND_MS, 492_000],
    [0.4, 1],
    [1.5, 2],
    [30 * 24 * 3_600 * SECOND_MS, 2_592_000_000],
  ])("counts in a window of %d ms as in one of %d ms", async (windowMs, wholeMs) => {
    const counting = { algorithm: "fixed-window", align: "first-hit" } as const
    const { store, statuses } = await start(2, { windowMs, validate: false }, counting)
    expect(await statuses("/200", "/200", "/200")).toEqual([200, 200, 429])
    const { resetTime } = await store.increment("127.0.0.1")
    // The reset time of a refusal is rounded up.
    expect(resetTime).toEqual(new Date(Date.now() + wholeMs + 1))
  })

  it("can be shared by limiters whose windows differ only by a rounding error", async () => {
    const { store } = await start(2, { windowMs: 8.2 * 60 * SECOND_MS })
    expect(8.2 * 60 * SECOND_MS).not.toBe(492_000)
    expect(() => store.init({ limit: 2, windowMs: 492_000 } as never)).not.toThrow()
  })
})
