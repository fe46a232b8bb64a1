import { manualClock } from "@sluice/core"
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { type Served, serve } from "../demo/serve.ts"
import { createApp } from "./api-plans.ts"

const clock = manualClock()
let server: Served

beforeEach(async () => {
  clock.set(Date.UTC(2024, 0, 1))
  vi.spyOn(console, "error").mockImplementation(() => undefined)
  const app = createApp(
    (ctx) => {
      if (ctx.path === "/broken") throw new Error("The database does not answer.")
      ctx.body = "ok"
    },
    { clock },
  )
  server = await serve(app.callback())
})
afterEach(async () => {
  await server.close()
  vi.restoreAllMocks()
})

const get = (token: string, path = "/reports") =>
  fetch(`${server.url}${path}`, { headers: { authorization: `Bearer token-of-${token}` } })

/** Sends requests at once, and returns how many were admitted. */
async function admitted(times: number, token: string): Promise<number> {
  const all = await Promise.all(Array.from({ length: times }, () => get(token)))
  return all.filter(({ status }) => status === 200).length
}

describe("plans", () => {
  it.each([
    { account: "ann", what: "on the free plan", minute: 10, month: 1_000 },
    { account: "bob", what: "on the pro plan", minute: 60, month: 50_000 },
  ])("give an account $what $minute a minute and $month a month", async ({ account, minute, month }) => {
    const first = await get(account)
    expect(first.headers.get("ratelimit-policy")).toBe(
      `"minute";q=${minute};w=60, "month";q=${month};w=2592000`,
    )
    expect(first.headers.get("ratelimit")).toContain(`"minute";r=${minute - 1}`)
    expect(await admitted(minute, account)).toBe(minute - 1)

    const refused = await get(account)
    expect(refused.status).toBe(429)
    expect(await refused.json()).toMatchObject({ "violated-policies": ["minute"] })
    const seconds = Number(refused.headers.get("retry-after"))
    clock.advance((seconds - 1) * 1000)
    expect((await get(account)).status).toBe(429)
    clock.advance(1000)
    expect((await get(account)).status).toBe(200)
  })

  it("end for the month when its requests are used up, and begin again with the next month", async () => {
    for (let minute = 0; minute < 100; minute++) {
      expect(await admitted(10, "ann")).toBe(10)
      clock.advance(120_000)
    }
    const refused = await get("ann")
    expect(await refused.json()).toMatchObject({ "violated-policies": ["month"] })
    const seconds = Number(refused.headers.get("retry-after"))
    clock.advance((seconds - 1) * 1000)
    expect((await get("ann")).status).toBe(429)
    clock.advance(1000)
    expect((await get("ann")).status).toBe(200)
  })

  it("do not count what the server could not do", async () => {
    for (let time = 0; time < 12; time++) expect((await get("ann", "/broken")).status).toBe(500)
    expect(await admitted(11, "ann")).toBe(10)
  })

  it("are only for accounts", async () => {
    expect((await get("nobody")).status).toBe(401)
  })
})
