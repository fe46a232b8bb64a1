import { once } from "node:events"
import { connect, type Socket } from "node:net"
import { afterEach, describe, expect, it } from "vitest"
import { until } from "../servers/until.ts"
import { examples } from "../test-length.ts"
import { type Frames, openFrames } from "./frames.ts"
import { FORWARD, question } from "./questions.ts"
import { callOnce, callRaw, openRaw } from "./raw-call.ts"
import { type Started, startService, TWO_SERVICES } from "./started.ts"

// Attacks the event loop with more valid requests than the service can answer, and with headers that are small only
// on the wire.

const BOUNDS = { maxMessageBytes: 100_000, maxInFlight: 1_000, maxRequests: 100, arrivalMs: 60_000 }
const BODY = '{"serviceId":1,"request":"{\\"user_id\\":\\"a\\"}"}'
const HEAD = `host: a\r\ncontent-type: application/json\r\ncontent-length: ${BODY.length}`
const REQUEST = `POST ${FORWARD} HTTP/1.1\r\n${HEAD}\r\n\r\n${BODY}`

const ends: (() => unknown)[] = []
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end()
})

async function start(onAnswered?: () => void): Promise<Started> {
  const started = await startService(TWO_SERVICES, { bounds: BOUNDS, ...(onAnswered && { onAnswered }) })
  ends.push(() => started.stop())
  return started
}

function open({ http }: Started, from: string): Socket {
  const { hostname: host, port } = new URL(http)
  const socket = connect({ host, port: Number(port), localAddress: from })
  ends.push(() => socket.destroy())
  return socket.on("error", () => undefined)
}

/** Resolves when the socket has received a response. */
function answered(socket: Socket): Promise<unknown> {
  return new Promise((resolve) => socket.once("data", resolve))
}

describe("requests that are sent without waiting for responses", () => {
  it("on many connections of one peer do not delay the request of another peer", async () => {
    let answers = 0
    let honest: Socket | undefined
    const started = await start(() => {
      // Send the honest request during the first turn of the attack.
      if (++answers === 100) honest?.write(REQUEST)
    })
    honest = open(started, "127.0.0.3")
    await once(honest, "connect")
    for (let left = 20; left > 0; left--) open(started, "127.0.0.2").resume().write(REQUEST.repeat(500))
    await answered(honest)
    // In one read, Node reads up to 64 KiB, which contain 330 requests. In one turn, Node reads up to 2 MiB.
    expect(answers).toBeLessThan(1_500)
    await until("all are answered", () => answers > 10_000)
  })

  it("are all answered, even on connections that begin while other connections wait", async () => {
    const started = await start()
    const sockets: Socket[] = []
    for (let index = 0; index < 30; index++) {
      const socket = open(started, "127.0.0.2")
      let text = ""
      socket.on("data", (piece) => {
        text += piece
      })
      socket.write(REQUEST.repeat(200))
      sockets.push(socket)
      if (index % 10 === 0) await new Promise((resolve) => setTimeout(resolve, 5))
      ends.push(() => expect(text.match(/HTTP\/1\.1 200/g)).toHaveLength(200))
      void until("all are answered", () => text.match(/HTTP\/1\.1 200/g)?.length === 200).then(() =>
        socket.destroy(),
      )
    }
    await until("all connections are answered", () => sockets.every(({ destroyed }) => destroyed))
  })
})

/**
 * The first header fields of a call, with the path as a literal without indexing (RFC 7541 appendix A, section
 * 6.2.2).
 */
const CALL = Buffer.concat([
  Buffer.from([0x83, 0x86, 0x04, FORWARD.length]),
  Buffer.from(FORWARD),
  Buffer.from([0x01, 1, 0x61]),
])
/** A field "x" with a value of 400 bytes that HPACK adds to its table (RFC 7541 section 6.2.1). */
const LONG_FIELD = Buffer.concat([Buffer.from([0x40, 1, 0x78, 0x7f, 0x91, 0x02]), Buffer.alloc(400, 0x76)])

/** Returns a HEADERS frame with END_HEADERS and END_STREAM (RFC 9113 section 6.2). */
function headers(stream: number, ...block: Buffer[]): Buffer {
  const payload = Buffer.concat(block)
  const head = Buffer.alloc(9)
  head.writeUIntBE(payload.length, 0, 3)
  head.writeUInt16BE(0x0105, 3)
  head.writeUInt32BE(stream, 5)
  return Buffer.concat([head, payload])
}

const honestStatus = async ({ grpc }: Started): Promise<number> =>
  (await callOnce(grpc, FORWARD, question("honest"))).status

describe("headers that refer to a long field again and again", () => {
  /** Sends calls until the service ends the connection. Resolves with the number of calls. */
  async function flood(peer: Frames, references: number): Promise<number> {
    let isOver = false
    void peer.closed.then(() => {
      isOver = true
    })
    peer.raw(headers(1, CALL, LONG_FIELD))
    let stream = 3
    for (; !isOver; stream += 2) {
      peer.raw(headers(stream, CALL, Buffer.alloc(references, 0xbe)))
      if (stream % 50 === 1) await new Promise(setImmediate)
    }
    return stream / 2
  }

  it("and exceed 16 KiB end their connection", async () => {
    const started = await start()
    expect(await flood(openFrames(started.grpc), 100)).toBeLessThan(10_000)
    expect(await honestStatus(started)).toBe(0)
  })

  it("and are refused by Node end their connection", async () => {
    const started = await start()
    await flood(openFrames(started.grpc), 16_000)
    expect(await honestStatus(started)).toBe(0)
  })

  it("in one call are refused with a status, and the next call of the session is answered", async () => {
    const { grpc } = await start()
    const session = openRaw(grpc)
    ends.push(() => session.destroy())
    const askWith = (length: number) =>
      callRaw(session, FORWARD, question("a"), { "x-large": "v".repeat(length) })
    expect(await askWith(17_000)).toMatchObject({
      status: 8,
      message: expect.stringContaining("16384%20bytes"),
    })
    expect(await askWith(15_000)).toMatchObject({ status: 0 })
  })
})

it("messages that are too long for Envoy's call do not end the session of their gateway", async () => {
  const { grpc } = await start()
  const session = openRaw(grpc)
  ends.push(() => session.destroy())
  const path = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit"
  const endsAtMs = performance.now() + examples(1_300, 3_000)
  while (performance.now() < endsAtMs) {
    expect(await callRaw(session, path, Buffer.alloc(5_000_000))).toMatchObject({ status: 0 })
  }
  expect(await callRaw(session, FORWARD, question("a"))).toMatchObject({ status: 0 })
})
