import { expectLimited, manualClock } from "@sluice/core/testing"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { type Served, serve } from "../demo/serve.ts"
import { createApp } from "./api-plans.ts"

const clock = manualClock()
let server: Served

beforeEach(async () => {
  clock.resetAll()
  const app = createApp(
    (ctx) => {
      ctx.body = "ok"
    },
    { clock },
  )
  server = await serve(app.callback())
})
afterEach(() => server.close())

const get = (token: string) =>
  fetch(`${server.url}/reports`, { headers: { authorization: `Bearer token-of-${token}` } })

/** Sends requests at the same time, and returns the number of admitted requests. */
async function admitted(times: number, token: string): Promise<number> {
  const all = await Promise.all(Array.from({ length: times }, () => get(token)))
  return all.filter(({ status }) => status === 200).length
}

describe("the API plans recipe", () => {
  it.each([
    { account: "ann", what: "free", minute: 10, month: 1_000 },
    { account: "bob", what: "pro", minute: 60, month: 50_000 },
  ])(
    "admits $minute requests a minute on the $what plan, and announces $month a month",
    async ({ account, minute, month }) => {
      const first = await get(account)
      expect(first.headers.get("ratelimit-policy")).toBe(
        `"minute";q=${minute};w=60, "month";q=${month};w=2592000`,
      )
      expect(first.headers.get("ratelimit")).toContain(`"minute";r=${minute - 1}`)
      const refused = await expectLimited(() => get(account), minute - 1)
      expect(await refused.json()).toMatchObject({ "violated-policies": ["minute"] })
      const seconds = Number(refused.headers.get("retry-after"))
      clock.advance((seconds - 1) * 1000)
      expect((await get(account)).status).toBe(429)
      clock.advance(1000)
      expect((await get(account)).status).toBe(200)
    },
  )

  it("refuses requests after the monthly quota is used up, until the stated wait is over", async () => {
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

  it("refuses requests without an account", async () => {
    expect((await get("nobody")).status).toBe(401)
  })
})
