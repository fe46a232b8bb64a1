import { createHmac } from "node:crypto"
import { manualClock } from "@sluice/core/testing"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { type Served, serve } from "../demo/serve.ts"
import { createApp } from "./webhooks-incoming.ts"

const SECRETS: Readonly<Record<string, string>> = { shop: "secret of shop", bank: "secret of bank" }

const clock = manualClock()
let handled: string[]
let isDown: boolean
let server: Served

beforeEach(async () => {
  clock.resetAll()
  handled = []
  isDown = false
  const app = createApp(
    (sender) => SECRETS[sender],
    async (sender, body) => {
      if (isDown) throw new Error("The database does not respond.")
      handled.push(`${sender} ${body}`)
    },
    { clock, trustedProxies: ["loopback"] },
  )
  server = await serve(app)
})
afterEach(() => server.close())

function post(sender: string, secret: string | undefined, from: string): Promise<Response> {
  const body = "{}"
  const signature = createHmac("sha256", secret ?? "a guess")
    .update(body)
    .digest("hex")
  const headers = { "x-sender": sender, "x-signature": signature, "x-forwarded-for": from }
  return fetch(`${server.url}/webhooks`, { method: "POST", headers, body })
}
const signed = (sender: string, from = "203.0.113.1") => post(sender, SECRETS[sender], from)
const forged = (sender: string, from = "203.0.113.9") => post(sender, undefined, from)

/** Sends requests at the same time, and returns the number of responses for each status. */
async function statuses(times: number, one: () => Promise<Response>): Promise<Record<string, number>> {
  const seen: Record<string, number> = {}
  for (const { status } of await Promise.all(Array.from({ length: times }, one)))
    seen[status] = (seen[status] ?? 0) + 1
  return seen
}

describe("incoming webhooks", () => {
  it("are limited to 60 a minute for a sender, from any address", async () => {
    expect(await statuses(60, () => signed("shop"))).toEqual({ 202: 60 })
    const refused = await signed("shop", "203.0.113.2")
    expect(refused.status).toBe(429)
    expect(handled).toHaveLength(60)
    // These requests are from another sender behind the same address.
    expect((await signed("bank")).status).toBe(202)

    const seconds = Number(refused.headers.get("retry-after"))
    clock.advance((seconds - 1) * 1000)
    expect((await signed("shop")).status).toBe(429)
    clock.advance(1000)
    expect((await signed("shop")).status).toBe(202)
  })

  it("with a forged signature count against the client's address, not against the sender", async () => {
    expect(await statuses(64, () => forged("shop"))).toEqual({ 401: 60, 429: 4 })
    expect(handled).toEqual([])
    expect((await forged("nobody", "203.0.113.8")).status).toBe(401)
    expect((await signed("shop")).headers.get("ratelimit")).toContain('"events";r=59')
  })

  it("without a signature are refused", async () => {
    const none = await fetch(`${server.url}/webhooks`, { method: "POST", headers: { "x-sender": "shop" } })
    expect(none.status).toBe(401)
  })

  it("do not count if their handler fails, because the sender will send them again", async () => {
    isDown = true
    expect(await statuses(10, () => signed("shop"))).toEqual({ 500: 10 })
    isDown = false
    expect((await signed("shop")).headers.get("ratelimit")).toContain('"events";r=59')
  })
})
