import { once } from "node:events"
import { type ClientHttp2Session, connect } from "node:http2"
import { connect as connectSocket, type Socket } from "node:net"
import { setTimeout as sleep } from "node:timers/promises"
import { create, toBinary } from "@bufbuild/protobuf"
import { afterEach, describe, expect, it } from "vitest"
import { ShouldForwardRequestsRequestSchema } from "../../packages/service/src/gen/sluice/v1/rate_limiter_pb.ts"
import { until } from "../servers/until.ts"
import { callOnce, framed } from "./raw-call.ts"
import { openService, type Started, startService, TWO_SERVICES } from "./started.ts"

/** Returns a batch of this many requests. */
function batchOf(requests: number): Uint8Array {
  const one = { serviceId: 1, request: '{"user_id":"a"}' }
  const message = create(ShouldForwardRequestsRequestSchema, { requests: Array(requests).fill(one) })
  return toBinary(ShouldForwardRequestsRequestSchema, message)
}

/**
 * Sends a call without reading its response. Resolves with "answered" when the response begins, or with the error
 * message.
 */
async function ask(session: ClientHttp2Session, batch: Uint8Array): Promise<string> {
  const stream = session.request({ ":method": "POST", ":path": MANY, "content-type": "application/grpc" })
  stream.end(framed(batch))
  try {
    await once(stream, "response")
    // Ignore the error that occurs when the connection ends.
    stream.on("error", () => undefined)
    return "answered"
  } catch (error) {
    return (error as Error).message
  }
}

it("unread responses are buffered up to a bound per connection, which closes if its peer continues", async () => {
  const bounds = { maxMessageBytes: 1_000_000, maxInFlight: 10_000, maxRequests: REQUESTS, arrivalMs: 10_000 }
  const started = await openService(TWO_SERVICES, {
    bounds: { ...bounds, maxUnfinishedBytes: 4_000_000 },
  })
  // Open a window of 0 bytes, so that the server cannot send any byte of a message.
  const session = connect(`http://${started.grpc}`, { settings: { initialWindowSize: 0 } })
  session.on("error", () => undefined)
  const closed = new Promise((resolve) => session.once("close", resolve))
  const bytes = batchOf(2_000)
  let answered = 0
  let refusal = "answered"
  while (refusal === "answered" && answered < 200) {
    refusal = await ask(session, bytes)
    answered++
  }
  expect(refusal).toContain("NGHTTP2_ENHANCE_YOUR_CALM")
  const small = batchOf(1)
  while (!session.destroyed) await ask(session, small).catch(() => undefined)
  await closed
  expect((await callOnce(started.grpc, MANY, small)).status).toBe(0)
})

const MANY = "/sluice.v1.RateLimiter/ShouldForwardRequests"
const ATTACKER = "127.0.0.2"
const ARRIVAL_MS = 1_000
const REQUESTS = 10_000

describe("responses that are not read", () => {
  const ends: (() => unknown)[] = []
  afterEach(async () => {
    for (const end of ends.splice(0).reverse()) await end()
  })

  async function start(
    arrivalMs: number,
    maxUnfinishedBytes?: number,
  ): Promise<{ started: Started; overloads: string[] }> {
    const overloads: string[] = []
    const started = await startService(TWO_SERVICES, {
      bounds: {
        ...{ maxMessageBytes: 4 * 2 ** 20, maxInFlight: 100_000, maxRequests: REQUESTS },
        ...{ arrivalMs, maxUnfinishedBytes },
      },
      onOverload: (what, peer) => void overloads.push(`${what} ${peer}`),
    })
    ends.push(() => started.stop())
    return { started, overloads }
  }

  /**
   * Sends batches over HTTP without reading the responses. The operating system buffers some megabytes of the
   * responses.
   */
  function post({ http }: Started, batches: number, from = ATTACKER): Socket {
    const { hostname: host, port } = new URL(http)
    const socket = connectSocket({ host, port: Number(port), localAddress: from }).pause()
    socket.on("error", () => undefined)
    ends.push(() => socket.destroy())
    const one = '{"serviceId":1,"request":"{\\"user_id\\":\\"a\\"}"}'
    const body = `{"requests":[${Array(REQUESTS).fill(one).join()}]}`
    const head = `POST ${MANY} HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n`
    for (let left = batches; left > 0; left--) socket.write(head + body)
    return socket
  }

  /**
   * Sends a batch over gRPC with a window that prevents the service from sending the response. Resolves when the
   * response begins.
   */
  async function call({ grpc }: Started): Promise<ClientHttp2Session> {
    const session = connect(`http://${grpc}`, {
      createConnection: ({ hostname, port }) =>
        connectSocket({ host: hostname, port: Number(port), localAddress: ATTACKER }),
      settings: { initialWindowSize: 0 },
    })
    session.on("error", () => undefined)
    ends.push(() => session.destroy())
    expect(await ask(session, batchOf(REQUESTS))).toBe("answered")
    return session
  }

  async function innocent({ grpc, http }: Started): Promise<string> {
    const { status } = await callOnce(grpc, MANY, batchOf(1))
    const headers = { "content-type": "application/json", connection: "close" }
    const body = '{"requests":[{"serviceId":1,"request":{"user_id":"a"}}]}'
    const response = await fetch(http + MANY, { method: "POST", headers, body })
    return `${status} ${response.status} ${(await response.text()).length > 0}`
  }

  it("close their HTTP connection after twice the arrival time", async () => {
    const { started } = await start(ARRIVAL_MS)
    const attacking = [post(started, 3), post(started, 3)]
    const reader = post(started, 1, "127.0.0.3")
    // This client reads slowly, and for longer than twice the arrival time.
    let read = 0
    const slow = setInterval(() => {
      let piece: Buffer | null = null
      for (let left = 4; left > 0; left--) {
        piece = reader.read(65_536) ?? reader.read()
        read += piece?.length ?? 0
      }
    }, 20)
    ends.push(() => clearInterval(slow))
    await Promise.all(attacking.map((socket) => gone(socket)))
    expect(await innocent(started)).toBe("0 200 true")
    await sleep(3 * ARRIVAL_MS)
    expect(reader.closed).toBe(false)
    expect(read).toBeGreaterThan(0)
  })

  /**
   * Resolves when the service has closed a connection. The client must write, because a client that does not read
   * would not notice otherwise.
   */
  async function gone(socket: Socket): Promise<void> {
    await until("the connection has ended", () => {
      // An empty line is allowed before a request.
      if (!socket.destroyed) socket.write("\r\n")
      return socket.destroyed
    })
  }

  it("over gRPC are limited in bytes, and the connection with the most bytes is closed first", async () => {
    const { started, overloads } = await start(10_000, 16_000_000)
    const attacking: ClientHttp2Session[] = []
    while (attacking.length < 4) attacking.push(await call(started))
    await until("the limit is reached", () => overloads.includes(`bytes ${ATTACKER}`))
    await until("a connection has ended", () => attacking.some((session) => session.destroyed))
    expect(await innocent(started)).toBe("0 200 true")
  })
})
