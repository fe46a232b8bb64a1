import { once } from "node:events"
import { readFileSync } from "node:fs"
import { connect as connectHttp2 } from "node:http2"
import { request } from "node:https"
import { connect, type Socket } from "node:net"
import { setTimeout as sleep } from "node:timers/promises"
import { connect as connectTls } from "node:tls"
import { afterEach, describe, expect, it, vi } from "vitest"
import { until } from "../servers/until.ts"
import { openFrames } from "./frames.ts"
import { FORWARD, question } from "./questions.ts"
import { callRaw, framed, openRaw } from "./raw-call.ts"
import { type Started, startService, TWO_SERVICES } from "./started.ts"

// Attacks with connections that never complete a request, which cost their sender almost nothing.

const ARRIVAL_MS = 250
/** The service sends a ping after at least one second, and the peer has 5 s to respond. */
const SILENT_MS = 6_000
const PONG_MS = 5_000
/** The time that a loaded machine may add to a deadline. */
const SLACK_MS = 10_000
const BOUNDS = {
  maxMessageBytes: 100_000,
  maxInFlight: 50,
  maxRequests: 20,
  arrivalMs: ARRIVAL_MS,
  idleMs: 60_000,
  maxConnections: 100,
  maxConnectionsPerPeer: 100,
}
const HALF_CLIENT_HELLO = Buffer.from([0x16, 0x03, 0x01, 0x02, 0x00])
const HALF_PREFACE = "PRI * HTTP/2.0\r\n"
const PREFACE = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
const EMPTY_SETTINGS = "\0\0\0\x04\0\0\0\0\0"
/** HEADERS of stream 1 without END_HEADERS. The rest of the header block must follow, but is never sent. */
const HALF_HEADER_BLOCK = "\0\0\x01\x01\0\0\0\0\x01\x83"
const HALF_HEAD = `POST ${FORWARD} HTTP/1.1\r\nhost: a\r\n`
const file = (name: string): Buffer => readFileSync(new URL(`../fixtures/tls/${name}`, import.meta.url))
const TLS = { cert: file("server.pem"), key: file("server.key"), clientCa: undefined }

const BODY = '{"serviceId":1,"request":"{\\"user_id\\":\\"innocent\\"}"}'
type DoorName = "grpc" | "http"
const sockets: Socket[] = []
let started: Started | undefined
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy()
  await started?.stop()
  started = undefined
})

const portOf = ({ grpc, http }: Started, door: DoorName): number =>
  Number(new URL(door === "grpc" ? `http://${grpc}` : http).port)

async function attack(
  to: Started,
  door: DoorName,
  bytes: string | Buffer,
  from = "127.0.0.1",
): Promise<Socket> {
  const socket = connect({ port: portOf(to, door), host: "127.0.0.1", localAddress: from })
  socket.on("error", () => undefined).resume()
  sockets.push(socket)
  await once(socket, "connect")
  if (bytes.length > 0) socket.write(bytes as string, "latin1")
  return socket
}

const attackers = (count: number, ...of: Parameters<typeof attack>): Promise<Socket[]> =>
  Promise.all(Array.from({ length: count }, () => attack(...of)))

async function closed(attacking: readonly Socket[], withinMs: number): Promise<number> {
  const sinceMs = performance.now()
  await until("all of them are closed", () => attacking.every((socket) => socket.closed), withinMs)
  return performance.now() - sinceMs
}

/**
 * Sends a request as an innocent client, on its own connection. Resolves with "200", the gRPC status, or the error if
 * the service does not respond.
 */
async function ask(to: Started, door: DoorName, tls: boolean): Promise<string> {
  if (door === "grpc") {
    const session = tls
      ? connectHttp2(`https://${to.grpc}`, { ca: file("ca.pem"), servername: "localhost" })
      : openRaw(to.grpc)
    session.on("error", () => undefined)
    const { status } = await callRaw(session, FORWARD, question("innocent"))
    session.destroy()
    return String(status)
  }
  if (!tls) {
    const asked = { method: "POST", headers: { "content-type": "application/json" }, body: BODY }
    return fetch(to.http + FORWARD, asked).then(
      ({ status }) => String(status),
      () => "closed",
    )
  }
  return new Promise((resolve) => {
    const asked = request(
      to.http.replace("http:", "https:") + FORWARD,
      { method: "POST", ca: file("ca.pem"), servername: "localhost", agent: false },
      (response) => resolve(String(response.resume().statusCode)),
    )
    asked.setHeader("content-type", "application/json")
    asked.once("error", () => resolve("closed")).end(BODY)
  })
}
const ANSWERED: Readonly<Record<DoorName, string>> = { grpc: "0", http: "200" }

describe.each(["grpc", "http"] as const)("over %s", (door) => {
  it("TLS handshakes that stop after five bytes are closed in time, and free their places", async () => {
    const failed: string[] = []
    started = await startService(TWO_SERVICES, {
      bounds: BOUNDS,
      tls: TLS,
      onFailedHandshake: (reason, peer) => void failed.push(`${reason} ${peer}`),
    })
    const attacking = await attackers(100, started, door, HALF_CLIENT_HELLO)
    await closed(attacking, ARRIVAL_MS + SLACK_MS)
    expect(failed).toEqual(Array(100).fill("ERR_TLS_HANDSHAKE_TIMEOUT 127.0.0.1"))
    expect(await ask(started, door, true)).toBe(ANSWERED[door])
  })

  it("a connection that stays silent after its handshake receives no additional time", async () => {
    started = await startService(TWO_SERVICES, { bounds: BOUNDS, tls: TLS })
    const socket = connectTls({
      port: portOf(started, door),
      host: "127.0.0.1",
      ca: file("ca.pem"),
      servername: "localhost",
      ALPNProtocols: [door === "grpc" ? "h2" : "http/1.1"],
    })
    sockets.push(socket)
    socket.on("error", () => undefined).resume()
    await once(socket, "secureConnect")
    await closed([socket], ARRIVAL_MS + SLACK_MS)
  })

  it.each([
    ["sends nothing", ""],
    ...(door === "grpc"
      ? [
          ["sends half a preface", HALF_PREFACE],
          ["sends its settings and no call", PREFACE + EMPTY_SETTINGS],
          ["sends half a block of headers", PREFACE + EMPTY_SETTINGS + HALF_HEADER_BLOCK],
        ]
      : [["sends half a head", HALF_HEAD]]),
  ] as [string, string][])("the service closes each of 100 connections that %s", async (_does, bytes) => {
    started = await startService(TWO_SERVICES, { bounds: BOUNDS })
    const attacking = await attackers(100, started, door, bytes)
    await closed(attacking, ARRIVAL_MS + SLACK_MS)
    expect(await ask(started, door, false)).toBe(ANSWERED[door])
  })

  it("a connection gains no time by sending single bytes", async () => {
    started = await startService(TWO_SERVICES, { bounds: BOUNDS })
    const slow = await attack(started, door, "")
    const bytes = door === "grpc" ? PREFACE + EMPTY_SETTINGS + HALF_HEADER_BLOCK : HALF_HEAD.repeat(2)
    let sent = 0
    const drip = setInterval(
      () => void (slow.writable && slow.write(bytes[sent++ % bytes.length] as string, "latin1")),
      40,
    )
    await closed([slow], ARRIVAL_MS + SLACK_MS)
    clearInterval(drip)
  })

  it("one address that opens all its connections leaves capacity for others, even on loopback", async () => {
    const refused: unknown[] = []
    const bounds = { ...BOUNDS, arrivalMs: 60_000, maxConnectionsPerPeer: undefined }
    started = await startService(TWO_SERVICES, {
      bounds,
      onRefusedConnection: (...how) => void refused.push(how),
    })
    const attacking = await attackers(100, started, door, "", "127.0.0.2")
    await until("the others are closed", () => attacking.filter((socket) => socket.closed).length === 75)
    expect(refused).toEqual(Array(75).fill(["peer", "127.0.0.2"]))
    expect(await ask(started, door, false)).toBe(ANSWERED[door])
    // Connections that the attacker closes become available again.
    for (const socket of attacking) socket.destroy()
    const ofAttacker = (): Promise<boolean> =>
      attack(started as Started, door, "", "127.0.0.2").then(async (socket) => {
        await sleep(20)
        return !socket.closed
      })
    await until("it may connect again", ofAttacker)
  })

  it("an idle connection is closed after some time, and a connection in use stays open", async () => {
    const idleMs = 300
    started = await startService(TWO_SERVICES, { bounds: { ...BOUNDS, idleMs } })
    if (door === "http") {
      const socket = await attack(started, door, `GET /nothing HTTP/1.1\r\nhost: a\r\n\r\n`)
      await once(socket, "data")
      // Send empty lines, which are allowed before a request and which stop Node's timer for idle connections.
      const drip = setInterval(() => socket.write("\r\n"), 100)
      await closed([socket], idleMs + ARRIVAL_MS + SLACK_MS)
      clearInterval(drip)
      return
    }
    const idle = openRaw(started.grpc)
    const busy = openRaw(started.grpc)
    const call = async (session: typeof idle): Promise<number> =>
      (await callRaw(session, FORWARD, question("somebody"))).status
    let goaway: number | undefined
    idle.on("goaway", (code) => {
      goaway = code
    })
    expect(await call(idle)).toBe(0)
    // This client responds to pings and also sends pings.
    const pings = setInterval(() => void (idle.destroyed || idle.ping(() => undefined)), 100)
    const sinceMs = performance.now()
    while (!idle.destroyed && performance.now() - sinceMs < idleMs + SLACK_MS) {
      expect(await call(busy)).toBe(0)
      await sleep(50)
    }
    clearInterval(pings)
    expect({ ended: idle.destroyed, goaway }).toEqual({ ended: true, goaway: 0 })
    expect(performance.now() - sinceMs).toBeGreaterThanOrEqual(idleMs - 50)
    expect(await call(busy)).toBe(0)
    busy.destroy()
  })
})

it("an HTTP/2 connection is closed if it stops inside a later header block and does not answer a ping", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] })
  try {
    started = await startService(TWO_SERVICES, { bounds: BOUNDS })
    const peer = openFrames(started.grpc)
    peer.headers(1, { ":path": FORWARD, "content-type": "application/grpc" })
    const message = framed(question("first"))
    // A DATA frame with END_STREAM.
    peer.raw(Buffer.concat([Buffer.from([0, 0, message.length, 0, 1, 0, 0, 0, 1]), message]))
    await peer.answered()
    await peer.answered()
    peer.raw(Buffer.from(HALF_HEADER_BLOCK.replace("\x01\x83", "\x03\x83"), "latin1"))
    let isClosed = false
    void peer.closed.then(() => {
      isClosed = true
    })
    const isClosedAfter = async (ms: number): Promise<boolean> => {
      vi.advanceTimersByTime(ms)
      for (let turns = 0; turns < 2_000 && !isClosed; turns++) await new Promise(setImmediate)
      return isClosed
    }
    // The service first sends a ping, and then waits for the response to the ping.
    expect(await isClosedAfter(SILENT_MS - PONG_MS)).toBe(false)
    expect(await isClosedAfter(PONG_MS - 100)).toBe(false)
    expect(await isClosedAfter(100)).toBe(true)
  } finally {
    vi.useRealTimers()
  }
})
