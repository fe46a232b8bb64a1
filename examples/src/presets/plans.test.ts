import { manualClock } from "@sluice/core"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { type Served, serve } from "../demo/serve.ts"
import { createApp } from "./plans.ts"

let server: Served

beforeEach(async () => {
  server = await serve(createApp({ clock: manualClock() }).callback())
})
afterEach(() => server.close())

const report = (token?: string) =>
  fetch(`${server.url}/reports`, token === undefined ? {} : { headers: { authorization: `Bearer ${token}` } })

async function admitted(times: number, token?: string): Promise<number> {
  let count = 0
  for (let time = 0; time < times; time++) if ((await report(token)).status === 200) count++
  return count
}

describe("plans", () => {
  it.each([
    { plan: "free", token: "token-of-ann", limit: 10 },
    { plan: "pro", token: "token-of-bob", limit: 100 },
  ])("admit $limit a minute on the $plan plan", async ({ plan, token, limit }) => {
    const first = await report(token)
    expect(await first.json()).toEqual({ plan })
    expect(first.headers.get("ratelimit")).toContain(`"${plan}";r=${limit - 1}`)
    expect(first.headers.get("ratelimit-policy")).toBe(`"${plan}";q=${limit};w=60`)
    expect(await admitted(limit + 5, token)).toBe(limit - 1)

    const refused = await report(token)
    expect(refused.status).toBe(429)
    expect(await refused.json()).toMatchObject({ "violated-policies": [plan] })
  })

  it("apply the free limit by address to requests without a valid account", async () => {
    expect(await admitted(6)).toBe(6)
    expect(await admitted(6, "made-up")).toBe(4)
  })

  it("count each account separately, on the same plan or without a plan", async () => {
    await admitted(101, "token-of-bob")
    expect((await report("token-of-bob")).status).toBe(429)
    expect((await report("token-of-cyd")).headers.get("ratelimit")).toContain('"pro";r=99')
    await admitted(11, "token-of-ann")
    expect((await report()).headers.get("ratelimit")).toContain('"free";r=9')
  })
})
