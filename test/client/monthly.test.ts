import { PaceError, paced } from "@sluice/client"
import { rateLimit } from "@sluice/express"
import express from "express"
import { expect, it, onTestFinished, vi } from "vitest"
import { listen } from "../contracts/adapter/listen.ts"

const DAY_MS = 86_400_000

it("the paced client uses the units of a month, and waits for the last seconds of it", async () => {
  // The limiter and the client read the same clock.
  const now = Date.parse("2026-02-08T00:00:00Z")
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance", "Date"], now })
  let calls = 0
  const app = express()
  app.use((_req, _res, next) => {
    calls++
    next()
  })
  const limit = rateLimit({
    name: "monthly",
    limit: 3,
    per: "month",
    anchor: 31,
    headers: ["draft-11", "legacy"],
  })
  app.use(limit, (_req, res) => void res.json({ ok: true }))
  const { url, close } = await listen(app)
  onTestFinished(async () => {
    vi.useRealTimers()
    await close()
    await limit.limiter.close()
  })
  const api = paced(fetch)
  const statuses = async (count: number): Promise<readonly number[]> => {
    const all: number[] = []
    for (let i = 0; i < count; i++) all.push((await api(url)).status)
    return all
  }

  expect(await statuses(3)).toEqual([200, 200, 200])
  const error = await api(url).catch((reason: unknown) => reason)
  expect(error).toBeInstanceOf(PaceError)
  // The month ends on the last day of February.
  const { code, retryAfterMs = 0, message } = error as PaceError
  expect({ code, message }).toMatchObject({
    code: "SLUICE_PACE_WAIT_TOO_LONG",
    message: expect.stringContaining("21 days"),
  })
  expect(retryAfterMs / DAY_MS).toBeGreaterThanOrEqual(20)
  expect(retryAfterMs / DAY_MS).toBeLessThan(20.011)

  // Another process learns the wait from the refusal of its first call.
  const other = paced(fetch)
  const refused = await other(url)
  expect([refused.status, refused.headers.get("retry-after")]).toEqual([429, `${20 * 86_400}`])
  await expect(other(url)).rejects.toMatchObject({ code: "SLUICE_PACE_WAIT_TOO_LONG" })
  expect(calls).toBe(4)

  await vi.advanceTimersByTimeAsync(20 * DAY_MS - 10_000)
  const early = paced(fetch, { maxWaitMs: 15_000 })(url).then(({ status }) => status)
  await vi.advanceTimersByTimeAsync(0)
  await vi.waitFor(() => expect(calls).toBe(5))
  await vi.advanceTimersByTimeAsync(15_000)
  expect(await early).toBe(200)
  await vi.advanceTimersByTimeAsync(900_000)
  expect(await statuses(2)).toEqual([200, 200])
  await expect(api(url)).rejects.toMatchObject({ code: "SLUICE_PACE_WAIT_TOO_LONG" })
  expect(calls).toBe(8)
})
