import { readFileSync } from "node:fs"
import { connect as connectHttp2 } from "node:http2"
import { connect, type Socket } from "node:net"
import { networkInterfaces } from "node:os"
import { setTimeout as sleep } from "node:timers/promises"
import { memoryStore, type Store } from "@sluice/core"
import { afterEach, describe, expect, it } from "vitest"
import { methodsOf } from "../../packages/core/src/stores/testing/methods-of.ts"
import { until } from "../servers/until.ts"
import { type Started, startService, TWO_SERVICES } from "./started.ts"

const PATH = "/sluice.v1.RateLimiter/ShouldForwardRequest"
const BOUNDS = { maxMessageBytes: 100_000, maxInFlight: 3, maxRequests: 20, arrivalMs: 60_000 }
const PREFACE = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
const HEAD = `POST ${PATH} HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n`
const file = (name: string): Buffer => readFileSync(new URL(`../fixtures/tls/${name}`, import.meta.url))
const TLS = { cert: file("server.pem"), key: file("server.key"), clientCa: undefined }

const HAS_IPV6 = Object.values(networkInterfaces()).some((all) =>
  all?.some(({ address }) => address === "::1"),
)

const sockets: Socket[] = []
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy()
})

const placeOf = ({ grpc, http }: Started, door: "grpc" | "http"): URL =>
  new URL(door === "grpc" ? `http://${grpc}` : http)

/**
 * Opens a connection and sends `bytes`. If `reads` is false, the socket does not notice that the other side has
 * closed.
 */
async function open(started: Started, door: "grpc" | "http", bytes = "", reads = true): Promise<Socket> {
  const { hostname, port } = placeOf(started, door)
  const socket = connect(Number(port), hostname.replace(/^\[|\]$/g, "")).on("error", () => undefined)
  sockets.push(socket)
  if (reads) socket.resume()
  await new Promise((resolve) => socket.once("connect", resolve))
  if (bytes !== "") await new Promise((resolve) => socket.write(bytes, resolve))
  return socket
}
/** Returns a promise that resolves when the other side has closed the connection. */
const isClosed = (socket: Socket): Promise<true> =>
  new Promise((resolve) => (socket.closed ? resolve(true) : socket.once("close", () => resolve(true))))

describe("a service that shuts down", () => {
  const LONG = BOUNDS.arrivalMs
  it.each<
    [about: string, door: "grpc" | "http", tls: boolean, bytes: string, reads: boolean, arrivalMs: number]
  >([
    ["has sent nothing over gRPC", "grpc", false, "", true, LONG],
    ["has sent nothing over gRPC and has gone", "grpc", false, "", false, LONG],
    ["has sent nothing over gRPC with TLS", "grpc", true, "", true, LONG],
    ["has begun a connection over gRPC", "grpc", false, PREFACE, true, LONG],
    ["has begun a connection over gRPC and has gone", "grpc", false, PREFACE, false, LONG],
    ["has sent nothing over HTTP", "http", false, "", true, LONG],
    ["has sent nothing over HTTP with TLS", "http", true, "", true, LONG],
    ["has sent half a head over HTTP", "http", false, HEAD, true, 300],
    [
      ...(["has sent half a head after a request over HTTP", "http", false] as const),
      ...([`${HEAD}content-length: 2\r\n\r\n{}${HEAD}`, true, 300] as const),
    ],
    ["has sent half a body over HTTP", "http", false, `${HEAD}content-length: 9\r\n\r\n{`, true, 300],
  ])("does not wait for a client that %s", async (_about, door, tls, bytes, reads, arrivalMs) => {
    const started = await startService(TWO_SERVICES, {
      bounds: { ...BOUNDS, arrivalMs },
      ...(tls && { tls: TLS }),
    })
    await open(started, door, bytes, reads)
    // Connections are accepted in order, so the earlier connection has been accepted now.
    const later = await open(started, door)
    later.destroy()
    expect(await started.end(5_000)).toBe(true)
  })

  it("refuses requests on existing connections instead of holding them, even for a new service", async () => {
    const queueing =
      "service_id: 1\nrules: { name: all, limit: 1, window: 1 minute, throttle: { kind: queue, max_wait_ms: 60000 } }\n"
    const started = await startService(queueing, { bounds: BOUNDS })
    const body = '{"requests":[{"serviceId":1},{"serviceId":1}],"brief":true}'
    const head = HEAD.replace(PATH, `${PATH}s`)
    const socket = await open(started, "http", `${head}content-length: ${body.length}\r\n\r\n{`, false)
    const answer = new Promise<string>((resolve) => socket.once("data", (chunk) => resolve(String(chunk))))
    // Connections are accepted in order, so the data of the first connection has been read when the next is answered.
    await fetch(`${started.http}/nothing`)
    const ended = started.end(5_000)
    socket.write(body.slice(1))
    expect(await answer).toContain('"shouldForward":false')
    expect(await ended).toBe(true)
  })

  it("responds to a request whose decision takes longer than the arrival timeout", async () => {
    const inner = memoryStore()
    let isAsked = false
    const take: Store["take"] = async (checks) => {
      isAsked = true
      await sleep(250)
      return inner.take(checks)
    }
    const started = await startService(TWO_SERVICES, {
      bounds: { ...BOUNDS, arrivalMs: 100 },
      shared: { store: { ...methodsOf(inner), take }, storeTimeoutMs: 20_000 },
    })
    const socket = await open(started, "http", `${HEAD}content-length: 15\r\n\r\n{"serviceId":2}`, false)
    const answer = new Promise<string>((resolve, reject) => {
      socket.once("data", (chunk) => resolve(String(chunk)))
      socket.once("close", () => reject(new Error("It was closed before it was answered.")))
    })
    await until("the store is asked", () => isAsked)
    const ended = started.end(5_000)
    expect(await answer).toMatch(/^HTTP\/1\.1 200 /)
    expect(await ended).toBe(true)
  })

  it("ends calls that are not answered in time, over gRPC and HTTP", async () => {
    const started = await startService(TWO_SERVICES, { bounds: BOUNDS })
    const session = connectHttp2(`http://${started.grpc}`)
    const ended = new Promise((resolve) => session.once("close", () => resolve(true)))
    session.on("error", () => undefined)
    const stream = session.request({ ":method": "POST", ":path": PATH, "content-type": "application/grpc" })
    stream.on("error", () => undefined)
    await new Promise((resolve) => stream.write(Buffer.from([0, 0, 0, 0, 9, 8]), resolve))
    // When the ping is answered, the server has received all frames before the ping.
    await new Promise((resolve) => session.ping(resolve))
    const socket = await open(started, "http", `${HEAD}content-length: 9\r\n\r\n{`)
    expect(await started.end(50)).toBe(false)
    expect(await ended).toBe(true)
    expect(await isClosed(socket)).toBe(true)
  })
})

describe("connections", () => {
  it.runIf(HAS_IPV6).each(["grpc", "http"] as const)(
    "over %s are counted by the /64 network of an IPv6 address",
    async (door) => {
      const refused: unknown[] = []
      const started = await startService(
        TWO_SERVICES,
        {
          bounds: { ...BOUNDS, maxConnections: 10, maxConnectionsPerPeer: 1 },
          onRefusedConnection: (...how) => void refused.push(how),
        },
        "::1",
      )
      await open(started, door)
      expect(await isClosed(await open(started, door))).toBe(true)
      expect(refused).toEqual([["peer", "::/64"]])
      await started.stop()
    },
  )

  it("over HTTP may send as many requests as calls in flight, and one more request ends the oldest", async () => {
    const started = await startService(TWO_SERVICES, { bounds: BOUNDS })
    const half = `${HEAD}content-length: 15\r\n\r\n{`
    const halves: Socket[] = []
    const answers: Promise<string>[] = []
    for (let i = 0; i < 3; i++) {
      const socket = await open(started, "http", half, false)
      halves.push(socket)
      answers.push(new Promise((resolve) => socket.once("data", (chunk) => resolve(String(chunk)))))
      // Connections are read in any order, but a response on another connection shows that the earlier requests have
      // been read.
      await fetch(`${started.http}/nothing`)
    }
    const asked = { method: "POST", headers: { "content-type": "application/json" } }
    expect((await fetch(started.http + PATH, { ...asked, body: '{"serviceId":2}' })).status).toBe(200)
    await open(started, "http", half, false)
    const [ended] = await Promise.all(answers.slice(0, 1))
    expect(ended).toMatch(/^HTTP\/1\.1 503 /)
    expect(ended).toMatch(/\r\nretry-after: [12]\r\n/i)
    expect(ended).toMatch(/\r\nconnection: close\r\n/i)
    expect(await isClosed(halves[0] as Socket)).toBe(true)
    halves[1]?.write('"serviceId":2}')
    expect(await answers[1]).toMatch(/^HTTP\/1\.1 200 /)
    // Close the sockets, because the service would wait for the rest of these requests.
    for (const socket of sockets) socket.destroy()
    await started.stop()
  })
})
