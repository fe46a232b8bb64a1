import { createServer, type Server as HttpServer } from "node:http"
import type { AddressInfo } from "node:net"
import { manualClock } from "@sluice/core/testing"
import { Server } from "socket.io"
import { io as connect, type Socket } from "socket.io-client"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { limitSockets } from "./socket-io.ts"

const clock = manualClock()
let http: HttpServer
let io: Server
let received: string[]
let opened: Socket[]

beforeEach(async () => {
  clock.resetAll()
  received = []
  opened = []
  http = createServer()
  io = new Server(http)
  limitSockets(io, { clock, trustedProxies: ["loopback"] })
  io.on("connection", (socket) => {
    socket.on("say", (text: string, acknowledge?: (answer: string) => void) => {
      received.push(text)
      acknowledge?.("ok")
    })
  })
  await new Promise<void>((resolve) => http.listen(0, "127.0.0.1", resolve))
})
afterEach(async () => {
  for (const socket of opened) socket.disconnect()
  await io.close()
})

/** Opens a connection. Resolves when the connection is open, and rejects with the server's error. */
async function open(from = "203.0.113.1"): Promise<Socket> {
  const { port } = http.address() as AddressInfo
  const socket = connect(`http://127.0.0.1:${port}`, {
    ...{ transports: ["websocket"], forceNew: true, reconnection: false },
    extraHeaders: { "x-forwarded-for": from },
  })
  opened.push(socket)
  await new Promise<void>((resolve, reject) => {
    socket.once("connect", resolve)
    socket.once("connect_error", reject)
  })
  return socket
}
const say = (socket: Socket, text: string): Promise<unknown> => socket.emitWithAck("say", text)

describe("the socket.io recipe", () => {
  it("refuses an address's eleventh connection in a minute, with the exact wait", async () => {
    for (let time = 0; time < 10; time++) await open()
    await expect(open()).rejects.toMatchObject({ message: "rate-limited", data: { retryAfterMs: 60_001 } })
    await open("203.0.113.2")
    clock.advance(60_000)
    await expect(open()).rejects.toMatchObject({ data: { retryAfterMs: 1 } })
    clock.advance(1)
    await open()
  })

  it("admits twenty messages in ten seconds from an address, over all its connections", async () => {
    const [first, second] = [await open(), await open()]
    for (let time = 0; time < 10; time++) {
      expect(await say(first, `first ${time}`)).toBe("ok")
      expect(await say(second, `second ${time}`)).toBe("ok")
    }
    const refused = { error: "rate-limited", retryAfterMs: 10_001 }
    expect([await say(first, "late"), await say(second, "late")]).toEqual([refused, refused])
    expect(await say(await open("203.0.113.2"), "other")).toBe("ok")
    expect(received).toHaveLength(21)

    clock.advance(10_000)
    expect(await say(first, "early")).toEqual({ error: "rate-limited", retryAfterMs: 1 })
    clock.advance(1)
    expect(await say(first, "in time")).toBe("ok")
  })

  it("emits an event for a refused message without an acknowledgment", async () => {
    const socket = await open()
    for (let time = 0; time < 20; time++) await say(socket, `${time}`)
    const refusal = new Promise((resolve) => socket.once("rate-limited", resolve))
    socket.emit("say", "late")
    expect(await refusal).toEqual({ event: "say", retryAfterMs: 10_001 })
    expect(received).not.toContain("late")
  })

  it("disconnects a client that floods, and refuses its messages for ten minutes", async () => {
    const socket = await open()
    const gone = new Promise((resolve) => socket.once("disconnect", resolve))
    for (let time = 0; time < 20; time++) await say(socket, `${time}`)
    for (let time = 0; time < 50; time++) socket.emit("say", "flood")
    expect(await gone).toBe("io server disconnect")
    expect(received).not.toContain("flood")
    expect(await say(await open(), "again")).toEqual({ error: "rate-limited", retryAfterMs: 600_000 })
    clock.advance(600_000)
    expect(await say(await open(), "later")).toBe("ok")
  })
})
