import { expectLimited, manualClock } from "@sluice/core/testing"
import { redisStore } from "@sluice/redis"
import { Redis } from "ioredis"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { type Served, serve } from "../demo/serve.ts"
import type { Surroundings } from "../surroundings.ts"
import { createApp } from "./sms.ts"

const COUNTRIES: Readonly<Record<string, string>> = { "33": "FR", "49": "DE", "88": "XX" }

const clock = manualClock()
let sent: string[]
let isDown: boolean
let server: Served

/** Parses international numbers, with spaces and hyphens. */
function parse(text: string) {
  const number = text.replace(/[\s-]/g, "")
  const country = COUNTRIES[number.slice(1, 3)]
  return /^\+\d{8,15}$/.test(number) && country !== undefined ? { number, country } : undefined
}

async function send(number: string): Promise<void> {
  if (isDown) throw new Error("The gateway does not respond.")
  sent.push(number)
}

async function start(surroundings: Surroundings = {}): Promise<void> {
  server = await serve(createApp(parse, send, { clock, trustedProxies: ["loopback"], ...surroundings }))
}

beforeEach(() => {
  clock.resetAll()
  sent = []
  isDown = false
})
afterEach(() => server.close())

const code = (phone: string, from = "203.0.113.1") =>
  fetch(`${server.url}/codes`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-forwarded-for": from },
    body: JSON.stringify({ phone }),
  })

/**
 * Requests codes, each for a different number of a country and from a different address. Returns the number of codes
 * that were sent.
 */
let asked = 0
async function codes(times: number, country: string): Promise<number> {
  let count = 0
  for (let time = 0; time < times; time++) {
    asked++
    const from = `198.18.${asked >> 8}.${asked & 255}`
    if ((await code(`+${country}${10_000_000 + asked}`, from)).status === 202) count++
  }
  return count
}

describe("codes by SMS", () => {
  it("are limited to three in ten minutes for each number, whatever its spelling or the client's address", async () => {
    await start()
    const spellings = ["+49 170 1234567", "+49-170-1234567", "+491701234567"]
    for (const [at, phone] of spellings.entries())
      expect((await code(phone, `198.51.100.${at}`)).status).toBe(202)
    const refused = await code("+491701234567")
    expect(refused.status).toBe(429)
    expect(await refused.json()).toMatchObject({ "violated-policies": ["number"] })
    const seconds = Number(refused.headers.get("retry-after"))
    clock.advance((seconds - 1) * 1000)
    expect((await code("+491701234567")).status).toBe(429)
    clock.advance(1000)
    expect((await code("+491701234567")).status).toBe(202)
    expect(sent).toEqual(Array(4).fill("+491701234567"))
  })

  it("are limited to ten an hour for each address", async () => {
    await start()
    let number = 4917012345000
    await expectLimited(() => code(`+${++number}`), 10)
  })

  it("are limited in each country, most strictly in countries without users", async () => {
    await start()
    expect(await codes(7, "88")).toBe(5)
    expect(await codes(32, "33")).toBe(30)
    expect(await codes(62, "49")).toBe(60)
  })

  it("are limited to 100 a day in total, in all countries", async () => {
    await start()
    let total = 0
    for (let hour = 0; hour < 3; hour++) {
      total += await codes(40, "49")
      clock.advance(2 * 3_600_000)
    }
    expect([total, sent.length]).toEqual([100, 100])
    clock.advance(36 * 3_600_000)
    expect(await codes(3, "33")).toBe(3)
  })

  it("do not count if the gateway fails or the number is invalid", async () => {
    await start()
    isDown = true
    for (let time = 0; time < 12; time++) expect((await code("+491701234567")).status).toBe(500)
    for (let time = 0; time < 12; time++) expect((await code("no number")).status).toBe(400)
    isDown = false
    const seen: number[] = []
    for (let time = 0; time < 4; time++) seen.push((await code("+491701234567")).status)
    expect(seen).toEqual([202, 202, 202, 429])
  })

  it("are not sent while the shared store is unavailable, because they cost money", async () => {
    // Nothing listens on this port.
    const client = new Redis({ port: 1, retryStrategy: () => null }).on("error", () => undefined)
    await start({ store: redisStore({ client }), service: "codes" })
    const refused = await code("+491701234567")
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([503, "1"])
    expect(sent).toEqual([])
    client.disconnect()
  })
})
