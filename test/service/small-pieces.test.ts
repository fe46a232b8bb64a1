import { connect, type Socket } from "node:net"
import { describe, expect, it } from "vitest"
import { until } from "../servers/until.ts"
import { openFrames } from "./frames.ts"
import { FORWARD, question } from "./questions.ts"
import { framed } from "./raw-call.ts"
import { TWO_SERVICES, useService } from "./started.ts"

// Attacks the event loop with requests in pieces of one byte. A piece of one byte takes as much time as a large
// piece.

const MANY = `${FORWARD}s`
const MOST_BYTES = 200_000
const BODY = '{"serviceId":1,"request":"{\\"user_id\\":\\"a\\"}"}'

const started = useService(TWO_SERVICES, {
  bounds: { maxMessageBytes: MOST_BYTES, maxInFlight: 100, maxRequests: 100, arrivalMs: 60_000 },
})

/** A connection over HTTP, and the data that it has received. */
class Client {
  readonly socket: Socket
  received = ""

  constructor(path: string, framing: string) {
    const { hostname, port } = new URL(started.http)
    this.socket = connect(Number(port), hostname)
    this.socket.on("error", () => undefined).on("data", (text) => (this.received += text))
    this.socket.write(
      `POST ${path} HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n${framing}\r\n\r\n`,
    )
  }

  /** Sends at most this many pieces, until the service closes the connection. Returns the number of sent pieces. */
  async pour(piece: string, most: number): Promise<number> {
    let sent = 0
    for (; sent < most && !this.socket.destroyed; sent += 1_000) {
      this.socket.write(piece.repeat(1_000))
      await new Promise(setImmediate)
    }
    return sent
  }

  async gone(): Promise<void> {
    await until("the connection has ended", () => this.socket.destroyed)
  }
}

const chunk = (text: string): string => `${text.length.toString(16)}\r\n${text}\r\n`
const CHUNKED = "transfer-encoding: chunked"

describe("a request over HTTP in chunks of one byte", () => {
  it.each([
    ["of white space", FORWARD, ""],
    ["after a part that is refused", MANY, `{"requests":5,"a":[${"[],".repeat(10_000)}`],
  ])("%s is refused before it is complete, and its connection closes", async (_what, path, first) => {
    const client = new Client(path, CHUNKED)
    if (first !== "") client.socket.write(chunk(first))
    await client.pour(chunk(" "), MOST_BYTES / 2)
    await client.gone()
    expect(client.received).toMatch(/^HTTP\/1\.1 400 /)
    expect(client.received).toContain("too many small pieces; send larger pieces")
  })

  it("whose headers are refused has its connection closed a second after the response", async () => {
    const client = new Client(FORWARD, `${CHUNKED}\r\ncontent-encoding: gzip`)
    await until("it is answered", () => client.received.startsWith("HTTP/1.1 501 "))
    expect(await client.pour(chunk(" "), Number.POSITIVE_INFINITY)).toBeGreaterThan(0)
    expect(client.received.match(/HTTP\/1\.1/g)).toHaveLength(1)
  })

  it("is answered if it is short", async () => {
    const client = new Client(FORWARD, CHUNKED)
    client.socket.write(`${[..." ".repeat(900), ...BODY].map(chunk).join("")}0\r\n\r\n`)
    await until("it is answered", () => client.received.includes("shouldForward"))
    client.socket.destroy()
  })
})

it("a request whose body arrives in pieces of the size of a small write is answered", async () => {
  const client = new Client(FORWARD, CHUNKED)
  const text = BODY + " ".repeat(MOST_BYTES - BODY.length)
  const pieces = text.match(/.{1,20}/g) as string[]
  client.socket.write(`${pieces.map(chunk).join("")}0\r\n\r\n`)
  await until("it is answered", () => client.received.includes("shouldForward"))
  client.socket.destroy()
})

describe("a call over gRPC in frames of one byte", () => {
  const HEADERS = { ":path": FORWARD, "content-type": "application/grpc", te: "trailers" }
  const BYTE = Buffer.from([0])

  it("is refused before its message is complete", async () => {
    const peer = openFrames(started.grpc)
    peer.headers(1, HEADERS)
    peer.data(1, framed(Buffer.alloc(100), { length: 50_000 }))
    let sent = 0
    for (; sent < 40_000 && !peer.resetStreams.has(1); sent += 100) {
      for (let left = 100; left > 0; left--) peer.data(1, BYTE)
      await peer.answered()
    }
    expect(sent).toBeLessThan(10_000)
    peer.close()
  })

  it("is read if it is short", async () => {
    const peer = openFrames(started.grpc)
    peer.headers(1, HEADERS)
    for (const byte of framed(question("a"))) peer.data(1, Buffer.from([byte]))
    await peer.answered()
    expect(peer.resetStreams.size).toBe(0)
    peer.close()
  })
})
