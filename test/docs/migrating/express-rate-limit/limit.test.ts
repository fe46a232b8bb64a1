import { rateLimit as sluice } from "@sluice/express"
import { rateLimit as peer } from "express-rate-limit"
import { describe, expect, it } from "vitest"
import { until } from "../../../servers/until.ts"
import { type App, commonClock, serve, statuses } from "../pairs.ts"
import { admitted, quiet, times } from "../requests.ts"
import { appOf } from "./app.ts"

const once = { windowMs: 60_000, limit: 1 }
const minutely = { limit: 1, window: "1 minute" } as const

describe("as the guide on limits states,", () => {
  it("the old library admits 19 requests within 200 ms under a limit of 10, and Sluice 10 or 9", async () => {
    const steps = ["/", 59_900, ...times(9, "/"), 200, ...times(10, "/")]
    const burst = async (app: App, clock = commonClock()): Promise<number> =>
      admitted(await statuses(app, steps, clock)) - 1
    expect(await burst(appOf(peer({ windowMs: 60_000, limit: 10 })))).toBe(19)
    const clock = commonClock()
    const ten = { limit: 10, window: "1 minute", clock } as const
    expect(await burst(appOf(sluice(ten)), clock)).toBe(10)
    const again = commonClock()
    const strict = { ...ten, clock: again, algorithm: "sliding-window-strict" } as const
    expect(await burst(appOf(sluice(strict)), again)).toBe(9)
  })

  it("Sluice also supports a window that starts with the first request", async () => {
    const clock = commonClock()
    clock.advance(30_000)
    const steps = ["/", "/", 59_999, "/", 2, "/"]
    const firstHit = {
      limit: 1,
      window: "1 minute",
      algorithm: "fixed-window",
      align: "first-hit",
      clock,
    } as const
    expect(await statuses(appOf(sluice(firstHit)), steps, clock)).toEqual([200, 429, 429, 200])
    expect(await statuses(appOf(peer(once)), steps)).toEqual([200, 429, 429, 200])
  })

  it("the first of two old limiters counts requests that the second refuses, unlike in Sluice", async () => {
    const steps = [...times(4, "/"), 61_000, "/"]
    const day = peer({ windowMs: 86_400_000, limit: 3 })
    const minute = peer({ windowMs: 60_000, limit: 2 })
    expect(await statuses(appOf(day, minute), steps)).toEqual([200, 200, 429, 429, 429])
    const clock = commonClock()
    const rules = [
      { field: "ip", limit: 3, window: "1 day" },
      { field: "ip", limit: 2, window: "1 minute" },
    ]
    expect(await statuses(appOf(sluice({ rules, clock })), steps, clock)).toEqual([200, 200, 429, 429, 200])
  })

  it("both libraries admit a client after the wait in Retry-After", async () => {
    for (const make of [
      () => peer(once),
      (clock: ReturnType<typeof commonClock>) => sluice({ ...minutely, clock }),
    ]) {
      const clock = commonClock()
      const send = await serve(appOf(make(clock)))
      clock.advance(12_345)
      await send("/")
      const seconds = Number((await send("/")).headers["retry-after"])
      clock.advance(seconds * 1000)
      expect((await send("/")).status).toBe(200)
    }
  })

  it("the old memory store immediately forgets the counts of windows longer than 24.8 days", async () => {
    const month = 30 * 86_400_000
    const send = await serve(appOf(peer({ windowMs: month, limit: 1, validate: false })))
    await send("/")
    await until("a second request is admitted", async () => (await send("/")).status === 200)
    expect(await statuses(appOf(sluice({ limit: 1, window: month })), ["/", "/"])).toEqual([200, 429])
  })

  it("a limit of 0 refuses all requests in the old library, and Sluice accepts 0 only from a function", async () => {
    expect(await statuses(appOf(peer({ limit: 0, logger: quiet })), ["/"])).toEqual([429])
    expect(() => sluice({ limit: 0, window: "1 minute" })).toThrow(/0 is not a limit/)
    expect(await statuses(appOf(sluice({ limit: () => 0, window: "1 minute" })), ["/"])).toEqual([429])
  })
})
