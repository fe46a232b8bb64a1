import { once } from "node:events"
import { connect as connectTcp } from "node:net"
import { create, fromBinary, toBinary } from "@bufbuild/protobuf"
import { createClient } from "@connectrpc/connect"
import { createConnectTransport } from "@connectrpc/connect-node"
import { Client, credentials, Metadata, type ServiceError, status } from "@grpc/grpc-js"
import { memoryStore, type Store } from "@sluice/core"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { methodsOf } from "../../packages/core/src/stores/testing/methods-of.ts"
import {
  RateLimiter,
  ShouldForwardRequestRequestSchema,
  ShouldForwardRequestResponseSchema,
} from "../../packages/service/src/gen/sluice/v1/rate_limiter_pb.ts"
import { until } from "../servers/until.ts"
import { type Started, startService, WAITING } from "./started.ts"
import { type Called, openStranger, type Stranger } from "./stranger.ts"

const PATH = "/sluice.v1.RateLimiter/ShouldForwardRequest"

/** The HTTP/2 connection preface and an empty SETTINGS frame (RFC 9113 section 3.4). */
const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0", "latin1")

/** The beginning of a call over HTTP, without the end of its body. */
const HALF_CALL = `POST ${PATH} HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n{`

const open = (started: Started): Stranger =>
  openStranger(started.grpc, "sluice/v1/rate_limiter.proto", "sluice.v1.RateLimiter")

const codeOf = (called: Called): number | undefined => ("error" in called ? called.error.code : undefined)

describe("the gRPC endpoint", () => {
  let started: Started
  let stranger: Stranger
  let raw: Client
  beforeAll(async () => {
    const bounds = { maxMessageBytes: 100_000, maxInFlight: 3, maxRequests: 20, arrivalMs: 500 }
    started = await startService(WAITING, { bounds })
    stranger = open(started)
    raw = new Client(started.grpc, credentials.createInsecure())
  })
  afterAll(async () => {
    stranger.close()
    raw.close()
    await started.stop()
    expect(started.faults).toEqual([])
  })

  const send = (bytes: Buffer, path = PATH): Promise<Buffer | ServiceError> =>
    new Promise((resolve) => {
      const same = (given: Buffer): Buffer => given
      raw.makeUnaryRequest(path, same, same, bytes, new Metadata(), {}, (error, value) =>
        resolve(error ?? (value as Buffer)),
      )
    })
  const ask = (serviceId: number, user: string, more: object = {}, options: object = {}): Promise<Called> =>
    stranger.call(
      "ShouldForwardRequest",
      { service_id: serviceId, request: JSON.stringify({ user }), ...more },
      options,
    )

  it.each([
    ["a field of another type", Buffer.from([0x0a, 0x01, 0x31])],
    ["a string that extends past the end", Buffer.from([0x12, 0x7f, 0x7b])],
    ["bytes that are not a message", Buffer.from("hello, world")],
    ["a string that is not UTF-8", Buffer.from([0x08, 0x01, 0x1a, 0x02, 0xc3, 0x28])],
  ])("responds to %s with INVALID_ARGUMENT, and keeps serving", async (_what, bytes) => {
    expect(await send(bytes)).toMatchObject({ code: status.INVALID_ARGUMENT })
    expect(await ask(1, "after")).toMatchObject({ value: { should_forward: true } })
  })

  it("skips unknown fields of a message", async () => {
    const unknown = Buffer.concat([Buffer.from([0x08, 0x01]), Buffer.from([0xfa, 0x3f, 0x02, 0x68, 0x69])])
    expect(await send(Buffer.concat([unknown, Buffer.from("\x12\x02{}", "latin1")]))).toBeInstanceOf(Buffer)
  })

  it("accepts compressed messages", async () => {
    const zipped = openStranger(started.grpc, "sluice/v1/rate_limiter.proto", "sluice.v1.RateLimiter", {
      "grpc.default_compression_algorithm": 2,
    })
    const request = JSON.stringify({ user: "zipped", padding: "x".repeat(10_000) })
    expect(await zipped.call("ShouldForwardRequest", { service_id: 1, request })).toMatchObject({
      value: { should_forward: true, policy: "units" },
    })
    zipped.close()
  })

  it.each([
    ["bytes that are not HTTP/2", Buffer.from("hello, world\r\n\r\n")],
    ["a request of HTTP/1.1", Buffer.from("GET / HTTP/1.1\r\nhost: a\r\n\r\n")],
    [
      "a frame above the maximum length",
      Buffer.concat([PREFACE, Buffer.from("ffffff0000000000010000", "hex")]),
    ],
    [
      "data for a stream that has not begun",
      Buffer.concat([PREFACE, Buffer.from("00000400010000000941424344", "hex")]),
    ],
    ["invalid headers", Buffer.concat([PREFACE, Buffer.from("000004010500000001ffffffff", "hex")])],
  ])("refuses a connection that sends %s, and keeps serving other connections", async (_what, bytes) => {
    const socket = connectTcp(Number(started.grpc.split(":")[1]), "127.0.0.1")
    let read: Buffer = Buffer.alloc(0)
    const refused = new Promise<void>((resolve) => {
      socket.on("close", resolve).on("error", () => undefined)
      socket.on("data", (chunk) => {
        read = Buffer.concat([read, chunk])
        // Wait for a GOAWAY or RST_STREAM frame.
        for (let at = 0; at + 9 <= read.length; at += 9 + read.readUIntBE(at, 3)) {
          if ([3, 7].includes(read[at + 3] as number)) resolve()
        }
      })
    })
    socket.write(bytes)
    await refused
    socket.destroy()
    expect(await ask(1, "beside")).toMatchObject({ value: { should_forward: true } })
  })

  it("responds to the requests of a batch in order and independently, up to its maximum size", async () => {
    const requests = [
      { service_id: 1, request: '{"user":"batch"}', cost: 10 },
      { service_id: 1, request: "nothing" },
      { service_id: 9, request: "nothing" },
      {},
      { service_id: 1, request: '{"user":"batch"}', cost: 1_000_000 },
    ]
    const called = await stranger.call("ShouldForwardRequests", { requests })
    const { responses } = ("value" in called ? called.value : {}) as { responses: Record<string, unknown>[] }
    expect(responses.map((each) => [each.should_forward, (each.error as { code?: number })?.code])).toEqual([
      [true, undefined],
      [false, status.INVALID_ARGUMENT],
      [true, undefined],
      [false, status.INVALID_ARGUMENT],
      [false, undefined],
    ])
    expect(responses[0]).toMatchObject({ remaining: 999_990, headers: { RateLimit: expect.any(String) } })
    expect(responses[4]).toMatchObject({ status_code: 429, body: expect.stringContaining("units") })
    const brief = await stranger.call("ShouldForwardRequests", { requests: [requests[4]], brief: true })
    expect(brief).toMatchObject({ value: { responses: [{ status_code: 429, headers: {}, body: "" }] } })
    const more = await stranger.call("ShouldForwardRequests", { requests: Array(21).fill(requests[0]) })
    expect(codeOf(more)).toBe(status.INVALID_ARGUMENT)
  })
})

describe("the HTTP endpoint", () => {
  const told: unknown[] = []
  let started: Started
  beforeAll(async () => {
    const bounds = { maxMessageBytes: 100_000, maxInFlight: 3, maxRequests: 20, arrivalMs: 500 }
    const onAnswered = (...[door, path, code]: readonly unknown[]) => void told.push([door, path, code])
    started = await startService(WAITING, { bounds, onAnswered })
  })
  afterAll(async () => {
    await started.stop()
    expect(started.faults).toEqual([])
  })

  const post = async (
    body: unknown,
    headers: Record<string, string> = {},
    path = PATH,
  ): Promise<{ status: number; body: Record<string, unknown> }> => {
    const response = await fetch(started.http + path, {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: typeof body === "string" ? body : JSON.stringify(body),
    })
    return { status: response.status, body: (await response.json()) as Record<string, unknown> }
  }
  const asked = (serviceId: number, user: string, more: object = {}): object => ({
    serviceId,
    request: JSON.stringify({ user }),
    ...more,
  })

  it.each([
    ["a body that is not JSON", "{", {}, PATH, 400, "invalid_argument"],
    ["an unknown field", { servise: "a" }, {}, PATH, 400, "invalid_argument"],
    ["a value of another type", { serviceId: "one" }, {}, PATH, 400, "invalid_argument"],
    ["a body of another type", "a=1", { "content-type": "text/plain" }, PATH, 415, "invalid_argument"],
    ["a compressed body", "{}", { "content-encoding": "gzip" }, PATH, 501, "unimplemented"],
    ["a body that is too long", { request: "x".repeat(100_001) }, {}, PATH, 413, "resource_exhausted"],
    ["an unknown method", {}, {}, "/sluice.v1.RateLimiter/Nothing", 501, "unimplemented"],
    ["a path that is not a valid URL", {}, {}, "/%zz", 501, "unimplemented"],
    ["a batch whose requests are not a list", { requests: 5 }, {}, `${PATH}s`, 400, "invalid_argument"],
    ["a wrong time to wait", asked(1, "a"), { "connect-timeout-ms": "soon" }, PATH, 400, "invalid_argument"],
  ])("rejects %s", async (_what, body, headers, path, code, name) => {
    expect(await post(body, headers as Record<string, string>, path)).toMatchObject({
      status: code,
      body: { code: name, message: expect.any(String) },
    })
  })

  it("treats a batch without a body as empty, and refuses a body without a type", async () => {
    const send = async (init: RequestInit) => {
      const response = await fetch(`${started.http}${PATH}s`, { method: "POST", ...init })
      return [response.status, await response.json()]
    }
    expect(await send({})).toEqual([200, { responses: [] }])
    expect(await send({ body: Buffer.from("{}") })).toEqual([
      415,
      {
        code: "invalid_argument",
        message: "A body of type unknown is not supported; send application/json or application/proto.",
      },
    ])
  })

  it.each([
    ["requests that are numbers", [0x08, 0x01]],
    ["a request that extends past its end", [0x0a, 0x7f, 0x08]],
  ])("rejects a binary batch with %s", async (_what, bytes) => {
    const response = await fetch(`${started.http}${PATH}s`, {
      method: "POST",
      headers: { "content-type": "application/proto" },
      body: Buffer.from(bytes),
    })
    expect([response.status, await response.json()]).toMatchObject([400, { code: "invalid_argument" }])
  })

  it("responds to a chunked body as soon as the body is too long, and reads the rest", async () => {
    const { hostname, port } = new URL(started.http)
    const socket = connectTcp(Number(port), hostname)
    let answered = ""
    socket.on("data", (text) => {
      answered += text
    })
    const closed = new Promise((resolve) => socket.once("close", resolve))
    const head = "host: a\r\ncontent-type: application/json\r\ntransfer-encoding: chunked"
    socket.write(`POST ${PATH} HTTP/1.1\r\n${head}\r\n\r\n`)
    const chunk = `${(50_000).toString(16)}\r\n${" ".repeat(50_000)}\r\n`
    for (let sent = 0; sent < 3; sent++) socket.write(chunk)
    await until("it is answered", () => answered.includes("resource_exhausted"))
    expect(answered).toMatch(/^HTTP\/1\.1 413 /)
    socket.end(`${chunk}0\r\n\r\n`)
    await closed
    expect(answered.match(/HTTP\/1\.1/g)).toHaveLength(1)
  })

  it("discards a call whose caller hangs up in the middle of its body", async () => {
    const { hostname, port } = new URL(started.http)
    for (let gone = 0; gone < 6; gone++) {
      const socket = connectTcp(Number(port), hostname)
      socket.write(HALF_CALL)
      await new Promise((resolve) => setTimeout(resolve, 20))
      socket.destroy()
    }
    expect(await post(asked(9, "after"))).toMatchObject({ status: 200 })
  })

  it("lists the supported media types when it refuses a body", async () => {
    const message = async (body: unknown, headers: Record<string, string>) =>
      (await post(body as object, headers, PATH)).body.message
    const types = "application/json or application/proto"
    expect(await message("a=1", { "content-type": "text/plain" })).toBe(
      `A body of type text/plain is not supported; send ${types}.`,
    )
    expect(await message({ request: "x".repeat(100_001) }, {})).toMatch(
      /^The body is too long; at most \d+ bytes/,
    )
    const asGet = await fetch(`${started.http}${PATH}`)
    expect(await asGet.json()).toMatchObject({
      code: "unimplemented",
      message: expect.stringMatching(/POST/),
    })
  })

  it.each(["application/proto", "Application/Proto", "application/proto; charset=utf-8"])(
    "responds to a message of type %s with the same type",
    async (type) => {
      const request = create(ShouldForwardRequestRequestSchema, { serviceId: 9, request: "{}" })
      const response = await fetch(started.http + PATH, {
        method: "POST",
        headers: { "content-type": type },
        body: toBinary(ShouldForwardRequestRequestSchema, request),
      })
      expect(response.headers.get("content-type")).toBe("application/proto")
      const bytes = new Uint8Array(await response.arrayBuffer())
      expect(fromBinary(ShouldForwardRequestResponseSchema, bytes).shouldForward).toBe(true)
    },
  )

  it("waits until the caller's timeout, and then removes the call from the queue", async () => {
    await post(asked(3, "late"))
    const late = () => post(asked(3, "late"), { "connect-timeout-ms": "50" })
    // If the late call were still in the queue, the next call would be refused because the queue is full.
    for (let round = 0; round < 5; round++) {
      expect(await late()).toMatchObject({ status: 504, body: { code: "deadline_exceeded" } })
    }
  })

  it("removes a call from the queue when its caller hangs up", async () => {
    await post(asked(3, "gone"))
    await expect(
      fetch(started.http + PATH, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(asked(3, "gone")),
        signal: AbortSignal.timeout(150),
      }),
    ).rejects.toThrow()
    await until(
      "the next is held",
      async () => (await post(asked(3, "gone"), { "connect-timeout-ms": "300" })).status === 504,
    )
  })

  it("counts a call as in flight while the store works, even after the caller's timeout", async () => {
    const memory = memoryStore()
    let isOpen = (): void => undefined
    const opened = new Promise<void>((resolve) => {
      isOpen = resolve
    })
    const store: Store = {
      ...methodsOf(memory),
      take: (checks) => opened.then(() => memory.take(checks)),
    }
    // One caller may use two of the three places.
    const bounds = { maxMessageBytes: 100_000, maxInFlight: 3, maxRequests: 20, arrivalMs: 500 }
    const slow = await startService(WAITING, { bounds, shared: { store, storeTimeoutMs: 600_000 } })
    let retryAfter: string | null = null
    const statusOf = async (headers: Record<string, string>): Promise<number> => {
      const response = await fetch(slow.http + PATH, {
        method: "POST",
        headers: { "content-type": "application/json", ...headers },
        body: JSON.stringify(asked(1, "a")),
      })
      await response.text()
      retryAfter = response.headers.get("retry-after")
      return response.status
    }
    const late = { "connect-timeout-ms": "50" }
    expect([await statusOf(late), await statusOf(late), await statusOf(late)]).toEqual([504, 504, 503])
    expect(retryAfter).toMatch(/^[12]$/)
    isOpen()
    await until("there is room", async () => (await statusOf({})) === 200)
    await slow.stop()
    await memory.close()
  })

  it("accepts a batch of many held requests from one caller", async () => {
    const warnings: string[] = []
    const listen = ({ name }: Error) => void warnings.push(name)
    process.on("warning", listen)
    await post(asked(2, "held"))
    const requests = Array.from({ length: 20 }, () => asked(2, "held"))
    for (const headers of [{}, { "connect-timeout-ms": "500" }]) {
      const signal = AbortSignal.timeout(300)
      const asking = fetch(`${started.http}${PATH}s`, {
        method: "POST",
        headers: { "content-type": "application/json", ...headers },
        body: JSON.stringify({ requests }),
        signal,
      })
      await expect(asking).rejects.toThrow("timeout")
      await until("there is room", async () => {
        const { status } = await post({ requests: [asked(1, "held")] }, {}, `${PATH}s`)
        return status === 200
      })
    }
    process.off("warning", listen)
    expect(warnings.filter((name) => name === "MaxListenersExceededWarning")).toEqual([])
  })

  it("ends a request that never arrives completely", async () => {
    const socket = connectTcp(Number(new URL(started.http).port), "127.0.0.1")
    socket.write(HALF_CALL)
    const [answer] = await once(socket, "data")
    expect(String(answer)).toMatch(/^HTTP\/1\.1 408 /)
    await once(socket.resume(), "close")
  })

  it("reports each call once, with its method and its code", async () => {
    await post(asked(2, "told"))
    told.length = 0
    await post(asked(1, "told"))
    await post({})
    await post(asked(2, "told"), { "connect-timeout-ms": "50" })
    // A caller may receive its response before the event is emitted.
    await until("all are told", () => told.length >= 3)
    expect(told).toEqual([
      ["http", PATH, status.OK],
      ["http", PATH, status.INVALID_ARGUMENT],
      ["http", PATH, status.DEADLINE_EXCEEDED],
    ])
  })

  it.each([
    ["JSON", false],
    ["messages in their binary form", true],
  ])(
    "supports Connect's unary protocol, so that its clients can call with %s",
    async (form, useBinaryFormat) => {
      const transport = createConnectTransport({ baseUrl: started.http, httpVersion: "1.1", useBinaryFormat })
      const client = createClient(RateLimiter, transport)
      const request = JSON.stringify({ user: `connect ${form}` })
      expect(await client.shouldForwardRequest({ serviceId: 1, request })).toMatchObject({
        shouldForward: true,
        remaining: 999_999n,
      })
      await expect(client.shouldForwardRequest({})).rejects.toMatchObject({
        code: 3,
        rawMessage: "service_id: is missing; give service_id or service",
      })
    },
  )
})
