import { manualClock } from "@sluice/core"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { type Served, serve } from "../demo/serve.ts"
import { createApp } from "./bookings.ts"

const clock = manualClock()
let server: Served

beforeEach(async () => {
  clock.set(Date.UTC(2024, 0, 1))
  server = await serve(createApp({ clock, trustedProxies: ["loopback"] }))
})
afterEach(() => server.close())

const book = (from = "203.0.113.1", method = "POST") =>
  fetch(`${server.url}/bookings`, { method, headers: { "x-forwarded-for": from } })

async function admitted(times: number, from?: string): Promise<number> {
  let count = 0
  for (let time = 0; time < times; time++) if ((await book(from)).status === 201) count++
  return count
}

describe("bookings", () => {
  it("are limited to ten a minute per address", async () => {
    expect((await book()).headers.get("ratelimit-policy")).toBe('"bookings";q=10;w=60')
    expect(await admitted(25)).toBe(9)
    expect(await admitted(3, "203.0.113.2")).toBe(3)
  })

  it("are admitted again after exactly the wait in the refusal", async () => {
    await admitted(10)
    const refused = await book()
    const seconds = Number(refused.headers.get("retry-after"))
    expect(await refused.json()).toMatchObject({
      "violated-policies": ["bookings"],
      rejection: "retry-with-fixed-time",
      retry: { kind: "fixed", afterSeconds: seconds },
    })
    clock.advance((seconds - 1) * 1000)
    expect((await book()).status).toBe(429)
    clock.advance(1000)
    expect((await book()).status).toBe(201)
  })

  it("can be read without being counted", async () => {
    for (let time = 0; time < 20; time++) expect((await book("203.0.113.1", "GET")).status).toBe(200)
    expect(await admitted(11)).toBe(10)
  })

  it("count the addresses of one IPv6 network as one client", async () => {
    expect(await admitted(10, "2001:db8:1:1::1")).toBe(10)
    expect(await admitted(1, "2001:db8:1:1:ffff::2")).toBe(0)
    expect(await admitted(1, "2001:db8:1:2::1")).toBe(1)
  })
})
