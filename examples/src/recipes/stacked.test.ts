import { manualClock } from "@sluice/core"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { type Served, serve } from "../demo/serve.ts"
import { createApp } from "./stacked.ts"

const START = Date.UTC(2024, 0, 1)
const clock = manualClock()
let server: Served
/** The units of each rule that remained after the latest request. */
let left: Record<string, number | undefined>

beforeEach(async () => {
  clock.set(START)
  const app = await createApp({ clock })
  app.addHook("onSend", async ({ rateLimit }) => {
    left = Object.fromEntries(rateLimit?.checks.map(({ policy, remaining }) => [policy, remaining]) ?? [])
  })
  server = await serve(app)
})
afterEach(() => server.close())

const feed = (token = "token-of-ann") =>
  fetch(`${server.url}/feed`, { headers: { authorization: `Bearer ${token}` } })

describe("stacked limits", () => {
  it("take units from both counters, and report the rule with fewer remaining units", async () => {
    const first = await feed()
    expect(left).toEqual({ minute: 9, hour: 499 })
    expect(first.headers.get("ratelimit-policy")).toBe('"minute";q=10;w=60, "hour";q=500;w=3600')
    expect(first.headers.get("ratelimit")).toContain('"minute";r=9')
  })

  it("take no units from the hourly limit for requests that the per-minute limit refuses", async () => {
    for (let time = 0; time < 10; time++) expect((await feed()).status).toBe(200)
    for (let time = 0; time < 90; time++) expect((await feed()).status).toBe(429)
    clock.advance(2 * 60_000)
    await feed()
    expect(left).toEqual({ minute: 9, hour: 489 })
  })

  // Sends about five hundred requests, one after another.
  it("admit a client after each wait in Retry-After, until the hourly limit is used up", async () => {
    let admitted = 0
    let refused: Response | undefined
    while (clock.now() < START + 3_600_000) {
      const answer = await feed()
      if (answer.status === 200) {
        admitted++
        continue
      }
      const { "violated-policies": violated } = (await answer.json()) as { "violated-policies": string[] }
      if (violated.includes("hour")) {
        refused = answer
        break
      }
      clock.advance(Number(answer.headers.get("retry-after")) * 1000)
    }
    expect(admitted).toBe(500)
    expect(refused?.status).toBe(429)

    expect((await feed("token-of-bob")).status).toBe(200)
    clock.advance(Number(refused?.headers.get("retry-after")) * 1000)
    expect((await feed()).status).toBe(200)
  })
})
