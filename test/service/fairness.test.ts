import { once } from "node:events"
import { type ClientHttp2Session, connect as connectHttp2 } from "node:http2"
import { connect, type Socket } from "node:net"
import { create, toBinary } from "@bufbuild/protobuf"
import { redisStore } from "@sluice/redis"
import { Redis } from "ioredis"
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest"
import { ShouldForwardRequestsRequestSchema } from "../../packages/service/src/gen/sluice/v1/rate_limiter_pb.ts"
import { type RedisServer, startRedis } from "../servers/redis-server.ts"
import { startProxy, type TcpProxy } from "../servers/tcp-proxy.ts"
import { until } from "../servers/until.ts"
import { FORWARD, question } from "./questions.ts"
import { answerTo, beginCall, callRaw, framed } from "./raw-call.ts"
import { type Started, startService } from "./started.ts"

// Attacks the capacity for calls. An attacker uses as much capacity as it can, but innocent callers are still
// answered.

const MOST = 20
/** The largest part of `MOST` that one peer or one service can use. */
const SHARE = 15
const BOUNDS = { maxMessageBytes: 100_000, maxInFlight: MOST, maxRequests: 200, arrivalMs: 60_000 }
const ATTACKER = "127.0.0.2"
const MANY = `${FORWARD}s`
const LONG_MS = 3_600_000
const RULES = `
service_id: 1
rules: { name: units, field: user, rate: { requests_per_unit: 1000000, unit: day } }
---
service_id: 2
rules:
  name: held
  field: user
  rate: { requests_per_unit: 1, unit: day }
  throttle: { kind: queue, max_waiting: 100000, max_wait_ms: 2147483647 }
---
service_id: 3
rules:
  name: held-too
  field: user
  rate: { requests_per_unit: 1, unit: day }
  throttle: { kind: queue, max_waiting: 100000, max_wait_ms: 2147483647 }
---
service_id: 4
rules:
  name: soft
  field: user
  rate: { requests_per_unit: 1, unit: day }
  throttle: { kind: soft, percent: 100, queue: { max_waiting: 100000, max_wait_ms: 2147483647 } }
`
type DoorName = "grpc" | "http"
/** The result of a call, in words that apply to both servers. */
type Said = "answered" | "overloaded" | "late"
const SAID: Readonly<Record<string, Said>> = {
  "grpc 0": "answered",
  "grpc 14": "overloaded",
  "grpc 4": "late",
  "http 200": "answered",
  "http 503": "overloaded",
  "http 504": "late",
}

const ends: (() => unknown)[] = []
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end()
})

async function start(parts: Parameters<typeof startService>[1] = {}) {
  const overloads: string[] = []
  const started = await startService(RULES, {
    bounds: BOUNDS,
    onOverload: (what, peer) => void overloads.push(`${what} ${peer}`),
    ...parts,
  })
  ends.push(() => started.stop())
  return { started, overloads }
}

interface Caller {
  /** Sends a request. Resolves with the result. */
  ask(service: number, user: string, timeoutMs?: number): Promise<Said>
  /** Sends a batch of this many requests. */
  askMany(service: number, user: string, requests: number, timeoutMs?: number): Promise<Said>
  /** Resolves when the service has read all earlier requests of this caller. */
  flushed(): Promise<void>
}

/** Creates a caller with a separate address. */
function caller({ grpc, http }: Started, door: DoorName, from = "127.0.0.1"): Caller {
  if (door === "grpc") {
    const session = open(grpc, from)
    const call = async (path: string, message: Uint8Array, timeoutMs: number): Promise<Said> => {
      const { status } = await callRaw(session, path, message, { "grpc-timeout": `${timeoutMs}m` })
      return SAID[`grpc ${status}`] as Said
    }
    return {
      ask: (service, user, timeoutMs = LONG_MS) => call(FORWARD, question(user, service), timeoutMs),
      askMany(serviceId, user, requests, timeoutMs = LONG_MS) {
        const asked = { serviceId, request: JSON.stringify({ user }) }
        const batch = create(ShouldForwardRequestsRequestSchema, { requests: Array(requests).fill(asked) })
        return call(MANY, toBinary(ShouldForwardRequestsRequestSchema, batch), timeoutMs)
      },
      flushed: () => new Promise((resolve) => void session.ping(() => resolve())),
    }
  }
  const port = Number(new URL(http).port)
  const post = async (path: string, asked: object, timeoutMs: number): Promise<Said> => {
    const socket = connectFrom(port, from)
    const body = JSON.stringify(asked)
    socket.write(
      `POST ${path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-type: application/json\r\n` +
        `connect-timeout-ms: ${timeoutMs}\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    )
    const [answer] = await once(socket, "data")
    return SAID[`http ${String(answer).split(" ")[1]}`] as Said
  }
  return {
    ask: (serviceId, user, timeoutMs = LONG_MS) => post(FORWARD, { serviceId, request: { user } }, timeoutMs),
    askMany(serviceId, user, requests, timeoutMs = LONG_MS) {
      return post(MANY, { requests: Array(requests).fill({ serviceId, request: { user } }) }, timeoutMs)
    },
    flushed: async () => void (await post(FORWARD, {}, LONG_MS)),
  }
}

function connectFrom(port: number, from: string): Socket {
  const socket = connect({ port, host: "127.0.0.1", localAddress: from })
  socket.on("error", () => undefined)
  ends.push(() => socket.destroy())
  return socket
}

function open(address: string, from: string): ClientHttp2Session {
  const session = connectHttp2(`http://${address}`, {
    createConnection: ({ port }) => connectFrom(Number(port), from),
  })
  session.on("error", () => undefined)
  ends.push(() => session.destroy())
  return session
}

/** Returns how often each result occurred. */
function counted(said: readonly Said[]): Partial<Record<Said, number>> {
  const counts: Partial<Record<Said, number>> = {}
  for (const each of said) counts[each] = (counts[each] ?? 0) + 1
  return counts
}

describe.each(["grpc", "http"] as const)("over %s", (door) => {
  it.each([
    ["queueing", 2, 1],
    ["soft", 4, 2],
  ] as const)(
    "calls held by one service's %s rule leave capacity for calls of other services",
    async (_kind, service, admitted) => {
      const { started, overloads } = await start()
      const attacker = caller(started, door, ATTACKER)
      const innocent = caller(started, door)
      for (let i = 0; i < admitted; i++) expect(await attacker.ask(service, "a")).toBe("answered")
      const said: Said[] = []
      for (let i = 0; i < 3 * MOST; i++) void attacker.ask(service, "a").then((each) => said.push(each))
      await until("the rest is refused", () => said.length === 3 * MOST - SHARE)
      expect(counted(said)).toEqual({ overloaded: 3 * MOST - SHARE })
      expect(new Set(overloads)).toEqual(new Set([`held ${ATTACKER}`]))
      for (let i = 0; i < MOST; i++) expect(await innocent.ask(1, `user ${i}`)).toBe("answered")
      // The same service still responds to calls that it need not hold, and another service can still hold calls.
      expect(await innocent.ask(service, "b")).toBe("answered")
      expect(await innocent.ask(3, "a")).toBe("answered")
      expect(await innocent.ask(3, "a", 100)).toBe("late")
    },
  )

  it("held calls of one caller leave capacity for other callers, and release their capacity when they end", async () => {
    const { started } = await start()
    const attacker = caller(started, door, ATTACKER)
    const innocent = caller(started, door)
    expect(await attacker.ask(2, "a")).toBe("answered")
    const held = Array.from({ length: MOST }, () => attacker.ask(2, "a", 1_000))
    await attacker.flushed()
    await innocent.ask(3, "b")
    expect(await innocent.ask(3, "b", 50)).toBe("late")
    expect(counted(await Promise.all(held))).toEqual({ late: SHARE, overloaded: MOST - SHARE })
    const again = Array.from({ length: SHARE }, () => attacker.ask(2, "a", 200))
    expect(counted(await Promise.all(again))).toEqual({ late: SHARE })
  })

  it("a batch of held requests leaves capacity for other batches", async () => {
    const { started } = await start()
    const attacker = caller(started, door, ATTACKER)
    expect(await attacker.ask(2, "a")).toBe("answered")
    const held = attacker.askMany(2, "a", SHARE, 1_000)
    await attacker.flushed()
    expect(await caller(started, door).askMany(1, "b", MOST)).toBe("answered")
    expect(await held).toBe("late")
  })

  it("requests that never arrive completely leave capacity for requests that arrive", async () => {
    const { started, overloads } = await start()
    if (door === "grpc") {
      const session = open(started.grpc, ATTACKER)
      for (let i = 0; i < 2 * MOST; i++) {
        const stream = beginCall(session, FORWARD).resume()
        if (i % 2 === 0) stream.write(Buffer.from([0, 0, 0]))
      }
      await new Promise((resolve) => void session.ping(resolve))
    } else {
      for (let i = 0; i < 2 * MOST; i++) {
        const socket = connectFrom(Number(new URL(started.http).port), ATTACKER).resume()
        await once(socket, "connect")
        socket.write(
          `POST ${FORWARD} HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n{`,
        )
      }
    }
    await until("the oldest are ended", () => overloads.length >= MOST)
    expect(new Set(overloads)).toEqual(new Set([`arriving ${ATTACKER}`]))
    const innocent = caller(started, door)
    for (let i = 0; i < 2 * MOST; i++) expect(await innocent.ask(1, `user ${i}`)).toBe("answered")
  })
})

describe.each(["grpc", "http"] as const)("while Redis is silent, over %s", (door) => {
  let redis: RedisServer
  beforeAll(async () => {
    redis = await startRedis()
  })
  afterAll(() => redis.stop())

  async function startSilent(): Promise<{ started: Started; proxy: TcpProxy }> {
    const proxy = await startProxy(redis)
    const client = new Redis({ host: proxy.host, port: proxy.port })
    const store = redisStore({ client, prefix: `${door}:${performance.now()}:` })
    ends.push(
      () => proxy.close(),
      () => client.disconnect(),
      () => store.close(),
    )
    const { started } = await start({ shared: { store, storeTimeoutMs: 600_000 } })
    const first = caller(started, door)
    for (const service of [1, 2, 3]) expect(await first.ask(service, "first")).toBe("answered")
    proxy.pause()
    return { started, proxy }
  }

  it("the calls of one caller leave capacity for another caller", async () => {
    const { started, proxy } = await startSilent()
    const attacker = caller(started, door, ATTACKER)
    const said: Said[] = []
    const asked = Array.from({ length: 2 * MOST }, (_, i) =>
      // Use several services, so that only the address identifies the attacker.
      attacker.ask((i % 3) + 1, `attacker ${i}`).then((each) => said.push(each)),
    )
    await until("the rest is refused", () => said.length === 2 * MOST - SHARE)
    expect(counted(said)).toEqual({ overloaded: 2 * MOST - SHARE })
    const innocent = caller(started, door)
    const answers = [1, 2].map((i) => innocent.ask(1, `innocent ${i}`))
    await innocent.flushed()
    proxy.resume()
    expect(await Promise.all(answers)).toEqual(["answered", "answered"])
    await Promise.all(asked)
    expect(counted(said)).toEqual({ overloaded: 2 * MOST - SHARE, answered: SHARE })
  })

  it("the calls about one service leave capacity for another service", async () => {
    const { started, proxy } = await startSilent()
    const said: Said[] = []
    // Use many addresses, so that the calls share only the service.
    const asked = Array.from({ length: 2 * MOST }, (_, i) =>
      caller(started, door, `127.0.0.${i + 10}`)
        .ask(1, `attacker ${i}`)
        .then((each) => said.push(each)),
    )
    await until("the rest is refused", () => said.length === 2 * MOST - SHARE)
    expect(counted(said)).toEqual({ overloaded: 2 * MOST - SHARE })
    const innocent = caller(started, door)
    const answers = [1, 2].map((i) => innocent.ask(2, `innocent ${i}`))
    await innocent.flushed()
    proxy.resume()
    expect(await Promise.all(answers)).toEqual(["answered", "answered"])
    await Promise.all(asked)
  })
})

it("gRPC calls whose responses are not read leave capacity for other callers, and are ended", async () => {
  const { started, overloads } = await start({ bounds: { ...BOUNDS, arrivalMs: 200 } })
  const codes: number[] = []
  for (let i = 0; i < 3; i++) {
    const session = connectHttp2(`http://${started.grpc}`, {
      createConnection: ({ port }) => connectFrom(Number(port), ATTACKER),
      settings: { initialWindowSize: 0 },
    })
    session.on("error", () => undefined)
    ends.push(() => session.destroy())
    // A connection may open 2 * MOST streams.
    for (let j = 0; j < 2 * MOST - 1; j++) {
      const stream = beginCall(session, FORWARD)
      void answerTo(stream).then(({ status }) => codes.push(status || stream.rstCode))
      stream.end(framed(question("attacker")))
    }
  }
  await until(
    "the rest is refused",
    () => codes.filter((code) => code === 14).length === 3 * (2 * MOST - 1) - 4 * SHARE,
  )
  expect(new Set(overloads)).toEqual(new Set([`in-flight ${ATTACKER}`]))
  expect(await caller(started, "grpc").ask(1, "innocent")).toBe("answered")
  await until("all streams have ended", () => codes.length === 3 * (2 * MOST - 1))
  expect(await caller(started, "grpc", ATTACKER).ask(1, "again")).toBe("answered")
})
