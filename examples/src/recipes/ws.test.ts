import { once } from "node:events"
import { createServer, type IncomingMessage, type Server } from "node:http"
import type { AddressInfo } from "node:net"
import { manualClock } from "@sluice/core/testing"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { WebSocket } from "ws"
import { serve } from "./ws.ts"

const clock = manualClock()
let http: Server
let received: string[]
let opened: WebSocket[]

beforeEach(async () => {
  clock.resetAll()
  received = []
  opened = []
  http = createServer()
  const answer = (text: string) => {
    received.push(text)
    return "ok"
  }
  serve(http, answer, { clock, trustedProxies: ["loopback"] })
  http.listen(0, "127.0.0.1")
  await once(http, "listening")
})
afterEach(async () => {
  for (const socket of opened) socket.terminate()
  http.closeAllConnections()
  await new Promise((resolve) => http.close(resolve))
})

/** Opens a connection. Returns the socket, or the response of a server that refuses. */
async function open(from = "203.0.113.1"): Promise<WebSocket | IncomingMessage> {
  const { port } = http.address() as AddressInfo
  const socket = new WebSocket(`ws://127.0.0.1:${port}`, { headers: { "x-forwarded-for": from } })
  opened.push(socket)
  socket.on("error", () => undefined)
  return await new Promise((resolve) => {
    socket.once("open", () => resolve(socket))
    socket.once("unexpected-response", (_request, response: IncomingMessage) => resolve(response.resume()))
  })
}
async function connected(from?: string): Promise<WebSocket> {
  const socket = await open(from)
  if (!(socket instanceof WebSocket)) throw new Error(`The server responded with ${socket.statusCode}.`)
  return socket
}
async function say(socket: WebSocket, text: string): Promise<string> {
  const answer = once(socket, "message")
  socket.send(text)
  return `${(await answer)[0]}`
}
const refusal = (retryAfterMs: number) => JSON.stringify({ error: "rate-limited", retryAfterMs })

describe("the ws recipe", () => {
  it("refuses an address's eleventh connection in a minute with status 429 and the wait", async () => {
    for (let time = 0; time < 10; time++) await connected()
    expect(await open()).toMatchObject({ statusCode: 429, headers: { "retry-after": "61" } })
    await connected("203.0.113.2")
    clock.advance(60_000)
    expect(await open()).toMatchObject({ statusCode: 429, headers: { "retry-after": "1" } })
    clock.advance(1)
    await connected()
  })

  it("admits twenty messages in ten seconds from an address, over all its connections", async () => {
    const [first, second] = [await connected(), await connected()]
    for (let time = 0; time < 10; time++) {
      expect(await say(first, `first ${time}`)).toBe("ok")
      expect(await say(second, `second ${time}`)).toBe("ok")
    }
    expect(await say(first, "late")).toBe(refusal(10_001))
    expect(await say(await connected("203.0.113.2"), "other")).toBe("ok")
    expect(received).toHaveLength(21)

    clock.advance(10_000)
    expect(await say(second, "early")).toBe(refusal(1))
    clock.advance(1)
    expect(await say(second, "in time")).toBe("ok")
  })

  it("closes the connection of a client that floods, and refuses its messages for ten minutes", async () => {
    const socket = await connected()
    const closed = once(socket, "close")
    for (let time = 0; time < 200; time++) socket.send(`${time}`)
    const [code, reason] = await closed
    expect([code, `${reason}`]).toEqual([1013, "retry after 600000 ms"])
    expect(received).toHaveLength(20)
    expect(await say(await connected(), "again")).toBe(refusal(600_000))
    clock.advance(600_000)
    expect(await say(await connected(), "later")).toBe("ok")
  })

  it("survives a client that breaks the protocol or hangs up", async () => {
    const [rude, gone] = [await connected(), await connected()]
    const closed = once(rude, "close")
    rude.send("x".repeat(65_537))
    expect((await closed)[0]).toBe(1009)
    for (let time = 0; time < 5; time++) gone.send(`${time}`)
    gone.terminate()
    const other = await connected("203.0.113.2")
    for (let time = 0; time < 20; time++) expect(await say(other, `${time}`)).toBe("ok")
  })
})
