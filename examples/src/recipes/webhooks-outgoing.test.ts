import { createServer, type RequestListener } from "node:http"
import type { AddressInfo } from "node:net"
import { manualClock } from "@sluice/core/testing"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { type Served, serve } from "../demo/serve.ts"
import { createDelivery } from "./webhooks-outgoing.ts"

const clock = manualClock()
const { signal } = new AbortController()
let received: string[]
let pauseSeconds: number | undefined
let endpoint: Served
let deliver: ReturnType<typeof createDelivery>

const receive: RequestListener = async (request, response) => {
  let body = ""
  for await (const chunk of request) body += chunk
  received.push(`${request.url} ${body}`)
  if (pauseSeconds !== undefined) response.setHeader("retry-after", pauseSeconds)
  response.writeHead(pauseSeconds === undefined ? 204 : 503).end()
}

beforeEach(async () => {
  clock.resetAll()
  received = []
  pauseSeconds = undefined
  endpoint = await serve(receive)
  deliver = createDelivery({ clock })
})
afterEach(() => endpoint.close())

const to = (path: string, body: string, when: AbortSignal = signal) =>
  deliver({ endpoint: `${endpoint.url}${path}`, body }, when)
/** Resolves when requests that could be sent now have arrived. */
async function settled(count: number): Promise<void> {
  while (received.length < count) await new Promise(setImmediate)
  for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate)
}

describe("outgoing webhooks", () => {
  it("are sent to an endpoint five at the same time, and then every 200 ms in order", async () => {
    const all = Array.from({ length: 8 }, (_, at) => to("/a", `${at}`))
    await settled(5)
    expect(received).toHaveLength(5)
    for (const count of [6, 7, 8]) {
      clock.advance(199)
      await settled(count - 1)
      expect(received).toHaveLength(count - 1)
      clock.advance(1)
      await settled(count)
    }
    expect(received.slice(5)).toEqual(["/a 5", "/a 6", "/a 7"])
    expect((await Promise.all(all)).map(({ status }) => status)).toEqual(Array(8).fill(204))
  })

  it("do not wait for other endpoints", async () => {
    const slow = Array.from({ length: 6 }, (_, at) => to("/a", `${at}`))
    await settled(5)
    expect((await to("/b", "first")).status).toBe(204)
    clock.advance(200)
    await Promise.all(slow)
  })

  it("pause for the time that the endpoint requests", async () => {
    pauseSeconds = 30
    expect((await to("/a", "0")).status).toBe(503)
    pauseSeconds = undefined
    const next = to("/a", "1")
    clock.advance(29_999)
    await settled(1)
    expect(received).toEqual(["/a 0"])
    clock.advance(1)
    expect((await next).status).toBe(204)
  })

  it("are rejected with the wait if the endpoint pauses for more than a minute", async () => {
    pauseSeconds = 600
    await to("/a", "0")
    await expect(to("/a", "1")).rejects.toMatchObject({
      code: "SLUICE_RATE_LIMIT_EXCEEDED",
      decision: { refusal: "blocked", retryAfterMs: 600_000 },
    })
  })

  it("do not count if the endpoint cannot be reached", async () => {
    const closed = createServer()
    await new Promise<void>((resolve) => closed.listen(0, "127.0.0.1", resolve))
    const { port } = closed.address() as AddressInfo
    await new Promise((resolve) => closed.close(resolve))
    const dead = { endpoint: `http://127.0.0.1:${port}/`, body: "" }
    // The clock does not advance, so the sixth delivery would wait if the failed deliveries counted.
    for (let time = 0; time < 12; time++) await expect(deliver(dead, signal)).rejects.toThrow("fetch failed")
  })

  it("leave the queue when they are aborted", async () => {
    const first = Array.from({ length: 5 }, (_, at) => to("/a", `${at}`))
    await settled(5)
    const stop = new AbortController()
    const aborted = to("/a", "aborted", stop.signal)
    const last = to("/a", "last")
    stop.abort(new Error("shutdown"))
    await expect(aborted).rejects.toThrow("shutdown")
    clock.advance(200)
    expect((await last).status).toBe(204)
    await Promise.all(first)
    expect(received).not.toContain("/a aborted")
  })
})
