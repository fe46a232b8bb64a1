import { once } from "node:events"
import { type ClientHttp2Session, connect, createServer, type ServerHttp2Session } from "node:http2"
import { type AddressInfo, connect as connectTcp, createServer as createProxy, type Socket } from "node:net"
import { setTimeout as sleep } from "node:timers/promises"
import { Worker } from "node:worker_threads"
import { afterEach, describe, expect, it } from "vitest"
import { Keepalive, type KeepaliveTimes, keepaliveTimes } from "./keepalive.ts"

const ends: (() => unknown)[] = []
afterEach(() => {
  for (const end of ends.splice(0).reverse()) end()
})

interface Connected {
  readonly client: ClientHttp2Session
  readonly session: ServerHttp2Session
  /** Drops all data from the client without closing its connection. */
  silence(): void
}

/** A peer in its own thread that counts the pings to which it has responded. */
const ANSWERING = `
  const { workerData: { port, answers } } = require("node:worker_threads")
  const client = require("node:http2").connect("http://127.0.0.1:" + port)
  client.on("error", () => undefined)
  client.on("ping", () => setImmediate(() => {
    Atomics.add(answers, 0, 1)
    Atomics.notify(answers, 0)
  }))
`

/** Starts a server that pings its sessions. */
async function listen(times: KeepaliveTimes) {
  const keepalive = new Keepalive(times)
  const server = createServer()
  server.on("session", (session) => keepalive.follow(session))
  server.listen(0, "127.0.0.1")
  await once(server, "listening")
  ends.push(
    () => keepalive.close(),
    () => server.close(),
  )
  return { port: (server.address() as AddressInfo).port, opened: once(server, "session") }
}

/** Returns a session of a server that pings its sessions, and the client of this session. */
async function open(times: KeepaliveTimes): Promise<Connected> {
  const { port, opened } = await listen(times)
  const sockets: Socket[] = []
  const proxy = createProxy((socket) => {
    const behind = connectTcp(port, "127.0.0.1")
    sockets.push(socket, behind)
    for (const each of [socket, behind]) each.on("error", () => undefined)
    socket.pipe(behind).pipe(socket)
  })
  proxy.listen(0, "127.0.0.1")
  await once(proxy, "listening")
  const client = connect(`http://127.0.0.1:${(proxy.address() as AddressInfo).port}`)
  client.on("error", () => undefined)
  const [session] = (await opened) as [ServerHttp2Session]
  ends.push(
    () => proxy.close(),
    () => sockets.map((socket) => socket.destroy()),
    () => client.destroy(),
  )
  return { client, session, silence: () => sockets[0]?.unpipe() }
}

describe("keepalive", () => {
  it("pings a peer again after each reply, and keeps its session", async () => {
    const { client, session } = await open({ pingMs: 1, pongMs: 60_000 })
    for (let pings = 0; pings < 5; pings++) await once(client, "ping")
    expect(session.destroyed).toBe(false)
  })

  it("ends the session of a peer that does not reply", async () => {
    const { session, silence } = await open({ pingMs: 50, pongMs: 50 })
    silence()
    await once(session, "close")
  })

  it("keeps a draining session until its calls are answered", async () => {
    const { client, session } = await open({ pingMs: 5, pongMs: 60_000 })
    const stream = client.request({ ":path": "/" })
    const [answering] = await once(session, "stream")
    session.close()
    await once(client, "goaway")
    await sleep(100)
    expect(session.destroyed).toBe(false)
    answering.respond({ ":status": 200 }, { endStream: true })
    const [headers] = await once(stream, "response")
    expect(headers[":status"]).toBe(200)
  })

  it("keeps a session if the peer's reply arrived while this process was busy", async () => {
    const pongMs = 20
    const { port, opened } = await listen({ pingMs: 1, pongMs })
    const answers = new Int32Array(new SharedArrayBuffer(4))
    const worker = new Worker(ANSWERING, { eval: true, workerData: { port, answers } })
    ends.push(() => worker.terminate())
    const [session] = (await opened) as [ServerHttp2Session]
    for (let round = 0; round < 10; round++) {
      const before = Atomics.load(answers, 0)
      await new Promise(setImmediate)
      // Blocks this process until the peer has responded and its time to respond has expired.
      Atomics.wait(answers, 0, before, 500)
      const untilMs = performance.now() + 2 * pongMs
      while (performance.now() < untilMs);
    }
    expect(Atomics.load(answers, 0)).toBeGreaterThan(1)
    expect(session.destroyed).toBe(false)
  })

  it.each([
    [1, 1_000],
    [6_000, 1_000],
    [10_000, 5_000],
    [60_000, 30_000],
  ])("detects a silent peer within the arrival time of %i ms, but not before 6 s", (arrivalMs, pingMs) => {
    expect(keepaliveTimes(arrivalMs)).toEqual({ pingMs, pongMs: 5_000 })
  })
})
