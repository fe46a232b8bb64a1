import { once } from "node:events"
import { type ClientHttp2Session, constants } from "node:http2"
import { create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf"
import { anyUnpack } from "@bufbuild/protobuf/wkt"
import { status } from "@grpc/grpc-js"
import { rulesInMemory, tokens } from "@sluice/service"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { BadRequestSchema } from "../../packages/service/src/gen/google/rpc/error_details_pb.ts"
import { StatusSchema } from "../../packages/service/src/gen/google/rpc/status_pb.ts"
import {
  RegisterServiceRequestSchema,
  ShouldForwardRequestRequestSchema,
  ShouldForwardRequestResponseSchema,
} from "../../packages/service/src/gen/sluice/v1/rate_limiter_pb.ts"
import { until } from "../servers/until.ts"
import { openFrames } from "./frames.ts"
import { answerTo, beginCall, framed, openRaw, type RawAnswer } from "./raw-call.ts"
import { type Started, startService } from "./started.ts"

// Each call is made twice: so that the door reads and answers it itself, and so that @grpc/grpc-js does. A call that names a
// compression is one for the library, even where its message says that it is not compressed.
const WAYS = [
  { way: "the door itself", headers: {} },
  { way: "@grpc/grpc-js", headers: { "grpc-encoding": "gzip" } },
]

const PATH = "/sluice.v1.RateLimiter/ShouldForwardRequest"
const { NGHTTP2_CANCEL: CANCEL, NGHTTP2_NO_ERROR: NO_ERROR } = constants
const MOST_BYTES = 1_000
const RULES = `
service_id: 1
rules: { name: units, field: user, rate: { requests_per_unit: 1000000, unit: day } }
---
service_id: 2
rules:
  name: held
  field: user
  rate: { requests_per_unit: 1, unit: day }
  throttle: { kind: queue, max_waiting: 1, max_wait_ms: 86400000 }
`

type Asked = MessageInitShape<typeof ShouldForwardRequestRequestSchema>

const bytesOf = (asked: Asked): Uint8Array =>
  toBinary(ShouldForwardRequestRequestSchema, create(ShouldForwardRequestRequestSchema, asked))
const question = (user: string, serviceId = 1, more: Asked = {}): Uint8Array =>
  bytesOf({ serviceId, request: JSON.stringify({ user }), ...more })
const decisionOf = ({ bytes }: RawAnswer) => fromBinary(ShouldForwardRequestResponseSchema, bytes.subarray(5))
/** A message of exactly so many bytes. */
function questionOf(length: number): Uint8Array {
  const least = question("", 1, { request: JSON.stringify({ user: "x".repeat(200) }) }).length
  const message = question("", 1, { request: JSON.stringify({ user: "x".repeat(200 + length - least) }) })
  expect(message).toHaveLength(length)
  return message
}

describe.each(WAYS)("a call that is read by $way", ({ way, headers }) => {
  const told: [code: number, durationMs: number][] = []
  let started: Started
  let session: ClientHttp2Session
  beforeAll(async () => {
    started = await startService(RULES, {
      bounds: { maxMessageBytes: MOST_BYTES, maxInFlight: 3, maxRequests: 20, arrivalMs: 300 },
      onAnswered: (_door, _path, code, durationMs) => told.push([code, durationMs]),
    })
    session = openRaw(started.grpc)
  })
  afterAll(async () => {
    session.destroy()
    await started.stop()
    expect(started.faults).toEqual([])
  })

  const begin = (more: Readonly<Record<string, string>> = {}) =>
    beginCall(session, PATH, { ...headers, ...more })
  const send = (bytes: Uint8Array, more: Readonly<Record<string, string>> = {}): Promise<RawAnswer> => {
    const stream = begin(more)
    const answer = answerTo(stream)
    stream.end(bytes)
    return answer
  }
  const ask = (asked: Uint8Array, more: Readonly<Record<string, string>> = {}) => send(framed(asked), more)
  const answeredWith = async (code: number) => {
    const before = told.length
    await until("it is told", () => told.length > before)
    expect(told.slice(before).map(([each]) => each)).toEqual([code])
  }

  it("is read by it", async () => {
    const answer = await ask(question("which"))
    expect(answer).toMatchObject({ status: status.OK, details: undefined })
    expect(answer.headers).toMatchObject({ ":status": 200, "content-type": "application/grpc+proto" })
    // Which of them it was can be told by what the library says beside the answer.
    expect("date" in answer.headers).toBe(way === "@grpc/grpc-js")
    expect(answer.bytes.readUInt32BE(1)).toBe(answer.bytes.length - 5)
    expect(decisionOf(answer)).toMatchObject({ shouldForward: true, policy: "units", limit: 1_000_000n })
  })

  it("is answered with the errors of its fields", async () => {
    const { details, ...answer } = await ask(bytesOf({ request: "{}" }))
    expect(answer).toMatchObject({ status: status.INVALID_ARGUMENT, bytes: Buffer.alloc(0) })
    expect(decodeURIComponent(answer.message as string)).toBe("service_id: is missing, and so is service")
    const { code, details: each } = fromBinary(StatusSchema, Buffer.from(details as string, "base64"))
    expect(code).toBe(status.INVALID_ARGUMENT)
    expect(anyUnpack(each[0] as never, BadRequestSchema)?.fieldViolations).toMatchObject([
      { field: "service_id" },
    ])
  })

  it.each([
    ["byte by byte", 1],
    ["with its prefix in two pieces", 3],
    ["with its prefix by itself", 5],
    ["in pieces", 100],
  ])("may come %s", async (_how, size) => {
    const stream = begin()
    const answer = answerTo(stream)
    const bytes = framed(questionOf(300))
    for (let at = 0; at < bytes.length; at += size) {
      await new Promise((sent) => stream.write(bytes.subarray(at, at + size), sent))
    }
    stream.end()
    expect(decisionOf(await answer)).toMatchObject({ shouldForward: true, policy: "units" })
  })

  it("may have as many bytes as are accepted, and not one more", async () => {
    expect(await ask(questionOf(MOST_BYTES))).toMatchObject({ status: status.OK })
    const longer = await ask(questionOf(MOST_BYTES + 1))
    expect(longer.status).toBe(status.RESOURCE_EXHAUSTED)
    expect(decodeURIComponent(longer.message as string)).toMatch(/1001.*1000/)
  })

  it("is refused when it says that it is too long, and not when all of that has come", async () => {
    const stream = begin()
    const answer = answerTo(stream)
    stream.write(framed(Buffer.alloc(0), { length: 2 ** 32 - 1 }))
    const [refused] = await once(stream, "response")
    expect(Number(refused["grpc-status"])).toBe(status.RESOURCE_EXHAUSTED)
    stream.end(Buffer.alloc(100_000))
    await answer
    expect(await ask(question("after"))).toMatchObject({ status: status.OK })
  })

  it.each([
    ["no message", Buffer.alloc(0)],
    ["a part of its prefix", Buffer.from([0, 0, 0])],
    ["a part of its message", framed(Buffer.from("\x08"), { length: 9 })],
    ["two messages", Buffer.concat([framed(question("two")), framed(question("two"))])],
  ])("is refused with %s", async (_what, bytes) => {
    expect(await send(bytes)).toMatchObject({ status: status.UNIMPLEMENTED, bytes: Buffer.alloc(0) })
    expect(decisionOf(await ask(question("two", 1, { peek: true })))).toMatchObject({ remaining: 1_000_000n })
  })

  it("is refused where it has no body at all", async () => {
    const stream = session.request(
      { ":method": "POST", ":path": PATH, "content-type": "application/grpc", ...headers },
      { endStream: true },
    )
    expect(await answerTo(stream)).toMatchObject({ status: status.UNIMPLEMENTED })
  })

  it("may have an empty message", async () => {
    expect(await ask(Buffer.alloc(0))).toMatchObject({ status: status.INVALID_ARGUMENT })
  })

  it("is told of once, with how long it took", async () => {
    const [ok] = await Promise.all([ask(question("told")), answeredWith(status.OK)])
    expect(ok.status).toBe(status.OK)
    await Promise.all([ask(Buffer.from("nonsense")), answeredWith(status.INVALID_ARGUMENT)])
    for (const [, durationMs] of told) expect(durationMs).toBeGreaterThanOrEqual(0)
  })

  it("ends at its deadline, and whoever was in line is not any more", async () => {
    const user = `late-${way}`
    await ask(question(user, 2))
    for (let turn = 0; turn < 2; turn++) {
      // Were the first still in line the second would be refused: there is room for one.
      const answer = ask(question(user, 2), { "grpc-timeout": "150m" })
      const [late] = await Promise.all([answer, answeredWith(status.DEADLINE_EXCEEDED)])
      expect(late).toMatchObject({ status: status.DEADLINE_EXCEEDED, bytes: Buffer.alloc(0) })
    }
  })

  it("leaves nothing behind that waits for a deadline when it has been answered", async () => {
    const timers = () => process.getActiveResourcesInfo().filter((kind) => kind === "Timeout").length
    const before = timers()
    for (let calls = 0; calls < 50; calls++) {
      const answer = await ask(question("timed"), { "grpc-timeout": "100S" })
      expect(answer.status).toBe(status.OK)
    }
    expect(timers() - before).toBeLessThan(25)
  })

  it("is out of the line when its caller hangs up", async () => {
    const user = `gone-${way}`
    await ask(question(user, 2))
    const stream = begin()
    stream.end(framed(question(user, 2)))
    const inLine = async () => {
      const answer = await ask(question(user, 2), { "grpc-timeout": "50m" })
      return answer.status === status.OK
    }
    // One who finds no room is refused at once.
    await until("it is in line", inLine)
    const gone = answeredWith(status.CANCELLED)
    stream.close(CANCEL)
    await gone
    await until("there is room again", async () => !(await inLine()))
  })

  it("has no more than a bound in flight, however they come", async () => {
    const user = `many-${way}`
    const other = WAYS.find((each) => each.way !== way)?.headers ?? {}
    await ask(question(user, 2))
    await ask(question(`${user}-2`, 2))
    await ask(question(`${user}-3`, 2))
    const held = [user, `${user}-2`, `${user}-3`].map((each) => {
      const stream = beginCall(session, PATH, { ...other, "grpc-timeout": "5S" })
      const answer = answerTo(stream)
      stream.end(framed(question(each, 2)))
      return { stream, answer }
    })
    await until("one is too many", async () => {
      const { status: code, message } = await ask(question("one-more"))
      return code === status.RESOURCE_EXHAUSTED && /in.*flight/.test(message as string)
    })
    for (const { stream } of held) stream.close(CANCEL)
    await Promise.all(held.map(({ answer }) => answer))
    await until("there is room", async () => (await ask(question("one-more"))).status === status.OK)
  })

  it("has no more than a bound on their way, and for no longer than they may take", async () => {
    const half = [1, 2, 3].map(() => {
      const stream = begin()
      stream.write(Buffer.from([0, 0, 0, 0, 9, 8]))
      const answer = answerTo(stream)
      return { stream, answer }
    })
    const responses = half.map(({ stream }) => once(stream, "response"))
    const more = begin()
    more.write(Buffer.from([0]))
    const [refused] = await once(more, "response")
    expect(Number(refused["grpc-status"])).toBe(status.RESOURCE_EXHAUSTED)
    for (const [ended] of await Promise.all(responses)) {
      expect(Number(ended["grpc-status"])).toBe(status.DEADLINE_EXCEEDED)
    }
    for (const { stream } of half) stream.close(CANCEL)
    // More than a stream takes unread: who is refused is read to the end.
    more.end(Buffer.alloc(200_000)).resume()
    await once(more, "close")
    expect(await ask(question("whole"))).toMatchObject({ status: status.OK })
  })

  it("leaves room when its caller goes before all of it has come", async () => {
    for (let round = 0; round < 10; round++) {
      const stream = begin()
      stream.write(Buffer.from([0, 0]))
      // Both have reached the server when an answer to a later one has come.
      expect(await ask(question("meanwhile"))).toMatchObject({ status: status.OK })
      stream.close(CANCEL)
    }
  })
})

describe.each(WAYS)("who calls, as it is read by $way", ({ headers }) => {
  it("is known by its token, and by its address in the audit", async () => {
    const peers: string[] = []
    const started = await startService(rulesInMemory(), {
      tokens: tokens({ "1": "s3cret" }),
      audit: { changed: ({ peer }) => void peers.push(peer), notInForce() {} },
    })
    const session = openRaw(started.grpc)
    const message = create(RegisterServiceRequestSchema, {
      serviceId: 1,
      rule: { name: "one", field: "user", rate: { requestsPerUnit: 1, unit: "day" } },
    })
    const register = async (authorization: Readonly<Record<string, string>>) => {
      const path = "/sluice.v1.RateLimiter/RegisterService"
      const stream = beginCall(session, path, { ...headers, ...authorization })
      const answer = answerTo(stream)
      stream.end(framed(toBinary(RegisterServiceRequestSchema, message)))
      return (await answer).status
    }
    expect(await register({})).toBe(status.UNAUTHENTICATED)
    expect(await register({ authorization: "Bearer wrong" })).toBe(status.PERMISSION_DENIED)
    expect(peers).toEqual([])
    expect(await register({ authorization: "bearer s3cret" })).toBe(status.OK)
    expect(peers).toEqual([`127.0.0.1:${session.socket.localPort}`])
    session.destroy()
    await started.stop()
    expect(started.faults).toEqual([])
  })

  it("may learn of words of its own that no header field can hold", async () => {
    const started = await startService(rulesInMemory())
    const session = openRaw(started.grpc)
    const message = create(RegisterServiceRequestSchema, {
      serviceId: 1,
      rule: { name: "one", field: "user", rate: { requestsPerUnit: 1, unit: "jähr\n%" } },
    })
    const stream = beginCall(session, "/sluice.v1.RateLimiter/RegisterService", headers)
    const answer = answerTo(stream)
    stream.end(framed(toBinary(RegisterServiceRequestSchema, message)))
    const { status: code, message: told } = await answer
    expect(code).toBe(status.INVALID_ARGUMENT)
    expect(told).toMatch(/^[\x20-\x7e]+$/)
    expect(decodeURIComponent(told as string)).toMatch(/jähr.*%/s)
    session.destroy()
    await started.stop()
  })

  it("learns of a fault of the service no more than that it is one", async () => {
    const fault = new Error("a secret of the house")
    const started = await startService(RULES, {
      onUnknownService() {
        throw fault
      },
    })
    const session = openRaw(started.grpc)
    const stream = beginCall(session, PATH, headers)
    const answer = answerTo(stream)
    stream.end(framed(bytesOf({ service: "nobody" })))
    const { status: code, message } = await answer
    expect(code).toBe(status.INTERNAL)
    expect(decodeURIComponent(message as string)).toBe("An error of the decision service; its log has it.")
    expect(started.faults).toEqual([fault])
    session.destroy()
    await started.stop()
  })
})

describe("what the door leaves to @grpc/grpc-js", () => {
  let started: Started
  let session: ClientHttp2Session
  beforeAll(async () => {
    started = await startService(RULES)
    session = openRaw(started.grpc)
  })
  afterAll(async () => {
    session.destroy()
    await started.stop()
    expect(started.faults).toEqual([])
  })
  const ask = (headers: Readonly<Record<string, string>>) => {
    const stream = beginCall(session, PATH, headers)
    const answer = answerTo(stream)
    stream.end(framed(question("left")))
    return answer
  }

  it.each([
    ["a type that begins as gRPC's", { "content-type": "application/grpc;charset=utf-8" }, status.OK],
    ["a time that is none", { "grpc-timeout": "soon" }, status.INTERNAL],
    ["a time of nine digits", { "grpc-timeout": "123456789m" }, status.OK],
    ["a request that is no POST", { ":method": "PUT" }, status.OK],
    ["a method that there is not", { ":path": "/sluice.v1.RateLimiter/Nothing" }, status.UNIMPLEMENTED],
  ])("%s", async (_what, headers, code) => {
    const answer = await ask(headers as Record<string, string>)
    expect(answer.status).toBe(code)
    expect(answer.headers).toHaveProperty("date")
  })

  it("what is no gRPC", async () => {
    expect((await ask({ "content-type": "text/plain" })).headers[":status"]).toBe(415)
  })

  it("and what it does not", async () => {
    for (const headers of [
      { "content-type": "application/grpc+proto" },
      { "grpc-encoding": "identity" },
      { "grpc-timeout": "10S" },
      { "grpc-timeout": "60000000u", "grpc-accept-encoding": "gzip", "user-agent": "a test" },
    ]) {
      const answer = await ask(headers as Record<string, string>)
      expect(answer.status).toBe(status.OK)
      expect(answer.headers).not.toHaveProperty("date")
    }
  })

  it("a call that would wait longer than a timer of Node can, and which is not late before another", async () => {
    const held = (headers: Readonly<Record<string, string>>) => {
      const stream = beginCall(session, PATH, headers)
      const answer = answerTo(stream)
      stream.end(framed(question("patient", 2)))
      return { stream, answer }
    }
    expect((await held({}).answer).status).toBe(status.OK)
    // Some eleven thousand years.
    const patient = held({ "grpc-timeout": "99999999H" })
    let hasEnded = false
    patient.stream.on("response", () => {
      hasEnded = true
    })
    const other = beginCall(session, PATH, { "grpc-timeout": "50m" })
    other.write(Buffer.from([0]))
    const [late] = await once(other, "response")
    expect(Number(late["grpc-status"])).toBe(status.DEADLINE_EXCEEDED)
    other.close(CANCEL)
    expect(hasEnded).toBe(false)
    patient.stream.close(CANCEL)
    await patient.answer
  })

  it("a message that says it is compressed, where the call does not say how, is refused by neither's guess", async () => {
    const stream = beginCall(session, PATH)
    const answer = answerTo(stream)
    stream.end(framed(question("left"), { flag: 1 }))
    expect(await answer).toMatchObject({ status: status.INTERNAL, bytes: Buffer.alloc(0) })
  })
})

it("a call whose caller goes when its message has come, and not the end of its request, takes nothing", async () => {
  const started = await startService(RULES)
  const caller = openFrames(started.grpc)
  const begin = (stream: number) => {
    caller.headers(stream, { ":path": PATH, "content-type": "application/grpc" })
    caller.data(stream, framed(question("early")))
  }
  const reset = (stream: number) => caller.reset(stream, stream % 4 === 1 ? NO_ERROR : CANCEL)
  const [first, second] = [
    [1, 3, 5, 7],
    [9, 11, 13, 15],
  ] as const
  for (const stream of first) begin(stream)
  // Those have been read before they are reset, the others come with it.
  await caller.answered()
  for (const stream of first) reset(stream)
  for (const stream of second) {
    begin(stream)
    reset(stream)
  }
  await caller.answered()
  const session = openRaw(started.grpc)
  const stream = beginCall(session, PATH)
  const answer = answerTo(stream)
  stream.end(framed(question("early", 1, { peek: true })))
  expect(decisionOf(await answer)).toMatchObject({ remaining: 1_000_000n })
  caller.close()
  session.destroy()
  await started.stop()
  expect(started.faults).toEqual([])
})

it.each([
  ["longer than is accepted", framed(Buffer.alloc(0), { length: 2 ** 32 - 1 }), status.RESOURCE_EXHAUSTED],
  ["two messages", Buffer.concat([framed(question("two")), framed(question("two"))]), status.UNIMPLEMENTED],
  ["late", Buffer.from([0]), status.DEADLINE_EXCEEDED],
])(
  "a call that is %s is over when that is said: nobody waits for the rest of it",
  async (_what, bytes, code) => {
    const started = await startService(RULES, {
      bounds: { maxMessageBytes: MOST_BYTES, maxInFlight: 3, maxRequests: 20, arrivalMs: 100 },
    })
    const session = openRaw(started.grpc)
    const stream = beginCall(session, PATH)
    const answer = answerTo(stream)
    // And then no more of it, nor its end, as clients do whose upload is under way: Connect's for one.
    stream.write(bytes)
    expect(await answer).toMatchObject({ status: code })
    expect(stream.rstCode).toBe(NO_ERROR)
    // So the service can go down while its client stays.
    expect(await started.end(5_000)).toBe(true)
    session.destroy()
    expect(started.faults).toEqual([])
  },
)
