import { once } from "node:events"
import { type ClientHttp2Session, constants } from "node:http2"
import { create, fromBinary, toBinary } from "@bufbuild/protobuf"
import { anyUnpack } from "@bufbuild/protobuf/wkt"
import { status } from "@grpc/grpc-js"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { BadRequestSchema } from "../../packages/service/src/gen/google/rpc/error_details_pb.ts"
import { StatusSchema } from "../../packages/service/src/gen/google/rpc/status_pb.ts"
import { ShouldForwardRequestsRequestSchema } from "../../packages/service/src/gen/sluice/v1/rate_limiter_pb.ts"
import { until } from "../servers/until.ts"
import { bytesOf, decisionOf, FORWARD, question, WAYS } from "./questions.ts"
import { answerTo, beginCall, framed, openRaw, type RawAnswer } from "./raw-call.ts"
import { useService, WAITING } from "./started.ts"

const { NGHTTP2_CANCEL: CANCEL } = constants
const MOST_BYTES = 1_000

/** Returns a message of exactly `length` bytes. */
function questionOf(length: number): Uint8Array {
  const least = question("", 1, { request: JSON.stringify({ user: "x".repeat(200) }) }).length
  const message = question("", 1, { request: JSON.stringify({ user: "x".repeat(200 + length - least) }) })
  expect(message).toHaveLength(length)
  return message
}

describe.each(WAYS)("a call that is read by $way", ({ way, reader, headers, plainCalls }) => {
  const told: [code: number, durationMs: number][] = []
  const readers = new Set<unknown>()
  const methods = new Set<string>()
  const overloads: string[] = []
  let session: ClientHttp2Session
  const started = useService(WAITING, {
    bounds: { maxMessageBytes: MOST_BYTES, maxInFlight: 3, maxRequests: 20, arrivalMs: 300 },
    plainCalls,
    onAnswered(door, path, code, durationMs, by) {
      told.push([code, durationMs])
      methods.add(`${door} ${path}`)
      readers.add(by)
    },
    onOverload: (what) => void overloads.push(what),
  })
  beforeAll(() => {
    session = openRaw(started.grpc)
  })
  afterAll(() => session.destroy())

  const begin = (more: Readonly<Record<string, string>> = {}) =>
    beginCall(session, FORWARD, { ...headers, ...more })
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

  it("receives the response of that reader", async () => {
    const answer = await ask(question("which"))
    expect(answer).toMatchObject({ status: status.OK, details: undefined })
    expect(answer.headers).toMatchObject({ ":status": 200, "content-type": "application/grpc+proto" })
    expect([...readers]).toEqual([reader])
    // Only the library adds a date to each response.
    expect("date" in answer.headers).toBe(reader === "grpc-js")
    expect(answer.bytes.readUInt32BE(1)).toBe(answer.bytes.length - 5)
    expect(decisionOf(answer)).toMatchObject({ shouldForward: true, policy: "units", limit: 1_000_000n })
  })

  it("receives the errors of its fields", async () => {
    const { details, ...answer } = await ask(bytesOf({ request: "{}" }))
    expect(answer).toMatchObject({ status: status.INVALID_ARGUMENT, bytes: Buffer.alloc(0) })
    expect(decodeURIComponent(answer.message as string)).toBe(
      "service_id: is missing; give service_id or service",
    )
    const { code, details: each } = fromBinary(StatusSchema, Buffer.from(details as string, "base64"))
    expect(code).toBe(status.INVALID_ARGUMENT)
    expect(anyUnpack(each[0] as never, BadRequestSchema)?.fieldViolations).toMatchObject([
      { field: "service_id" },
    ])
  })

  it.each([
    ["byte by byte", 1],
    ["with its prefix in two chunks", 3],
    ["with its prefix separate", 5],
    ["in chunks", 100],
  ])("may arrive %s", async (_how, size) => {
    const stream = begin()
    const answer = answerTo(stream)
    const bytes = framed(questionOf(300))
    for (let at = 0; at < bytes.length; at += size) {
      await new Promise((sent) => stream.write(bytes.subarray(at, at + size), sent))
    }
    stream.end()
    expect(decisionOf(await answer)).toMatchObject({ shouldForward: true, policy: "units" })
  })

  it("may have the maximum number of bytes, but not one more", async () => {
    expect(await ask(questionOf(MOST_BYTES))).toMatchObject({ status: status.OK })
    const longer = await ask(questionOf(MOST_BYTES + 1))
    expect(longer.status).toBe(status.RESOURCE_EXHAUSTED)
    expect(decodeURIComponent(longer.message as string)).toMatch(/1001.*1000/)
  })

  it("is refused as soon as its prefix announces too many bytes", async () => {
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
    ["a body without a message", Buffer.alloc(0)],
    ["a part of its prefix", Buffer.from([0, 0, 0])],
    ["a part of its message", framed(Buffer.from("\x08"), { length: 9 })],
    ["two messages", Buffer.concat([framed(question("two")), framed(question("two"))])],
  ])("is refused with %s", async (_what, bytes) => {
    expect(await send(bytes)).toMatchObject({ status: status.UNIMPLEMENTED, bytes: Buffer.alloc(0) })
    expect(decisionOf(await ask(question("two", 1, { peek: true })))).toMatchObject({ remaining: 1_000_000n })
  })

  it("is refused if it has no body", async () => {
    const stream = session.request(
      { ":method": "POST", ":path": FORWARD, "content-type": "application/grpc", ...headers },
      { endStream: true },
    )
    expect(await answerTo(stream)).toMatchObject({ status: status.UNIMPLEMENTED })
  })

  it("may contain an empty message", async () => {
    expect(await ask(Buffer.alloc(0))).toMatchObject({ status: status.INVALID_ARGUMENT })
  })

  it("is reported once, with its method and duration", async () => {
    const [ok] = await Promise.all([ask(question("told")), answeredWith(status.OK)])
    expect(ok.status).toBe(status.OK)
    await Promise.all([ask(Buffer.from("nonsense")), answeredWith(status.INVALID_ARGUMENT)])
    for (const [, durationMs] of told) expect(durationMs).toBeGreaterThanOrEqual(0)
    expect(methods).toContain(`grpc ${FORWARD}`)
  })

  it("ends and leaves the queue at its deadline", async () => {
    const user = `late-${way}`
    await ask(question(user, 3))
    for (let turn = 0; turn < 2; turn++) {
      // The queue holds one call. If the first call were still in the queue, the second would be refused.
      const answer = ask(question(user, 3), { "grpc-timeout": "150m" })
      const [late] = await Promise.all([answer, answeredWith(status.DEADLINE_EXCEEDED)])
      expect(late).toMatchObject({ status: status.DEADLINE_EXCEEDED, bytes: Buffer.alloc(0) })
    }
  })

  it("leaves no deadline timer behind after its response", async () => {
    const timers = () => process.getActiveResourcesInfo().filter((kind) => kind === "Timeout").length
    const before = timers()
    for (let calls = 0; calls < 50; calls++) {
      const answer = await ask(question("timed"), { "grpc-timeout": "100S" })
      expect(answer.status).toBe(status.OK)
    }
    expect(timers() - before).toBeLessThan(25)
  })

  it("leaves the queue when its caller hangs up", async () => {
    const user = `gone-${way}`
    await ask(question(user, 3))
    const stream = begin()
    stream.end(framed(question(user, 3)))
    const inLine = async () => {
      const answer = await ask(question(user, 3), { "grpc-timeout": "50m" })
      return answer.status === status.OK
    }
    // A call is refused immediately if the queue is full.
    await until("it is in line", inLine)
    const gone = answeredWith(status.CANCELLED)
    stream.close(CANCEL)
    await gone
    await until("there is room again", async () => !(await inLine()))
  })

  it("may contain many requests that are held", async () => {
    const user = `crowd-${way}`
    await ask(question(user, 2))
    const warnings: string[] = []
    const listen = ({ name }: Error) => void warnings.push(name)
    process.on("warning", listen)
    const requests = Array.from({ length: 20 }, () => ({ serviceId: 2, request: JSON.stringify({ user }) }))
    const message = create(ShouldForwardRequestsRequestSchema, { requests })
    const stream = beginCall(session, `${FORWARD}s`, { ...headers, "grpc-timeout": "200m" })
    const answer = answerTo(stream)
    stream.end(framed(toBinary(ShouldForwardRequestsRequestSchema, message)))
    expect(await answer).toMatchObject({ status: status.DEADLINE_EXCEEDED })
    process.off("warning", listen)
    expect(warnings.filter((name) => name === "MaxListenersExceededWarning")).toEqual([])
  })

  it("may be held longer than a call may take to arrive", async () => {
    const user = `long-${way}`
    await ask(question(user, 2))
    const held = begin()
    let answers = 0
    held.once("response", () => answers++)
    held.end(framed(question(user, 2)))
    // This call ends at its arrival timeout, which starts later than the timeout of the held call.
    const half = begin()
    half.write(Buffer.from([0]))
    const [late] = await once(half, "response")
    expect([Number(late["grpc-status"]), answers]).toEqual([status.DEADLINE_EXCEEDED, 0])
    const gone = answeredWith(status.CANCELLED)
    held.close(CANCEL)
    await gone
  })

  it("does not count as arriving after its deadline, even if its caller stays", async () => {
    overloads.length = 0
    for (let calls = 0; calls < 4; calls++) {
      const half = begin({ "grpc-timeout": "20m" })
      const [late] = await once(half, "response")
      expect(Number(late["grpc-status"])).toBe(status.DEADLINE_EXCEEDED)
      expect(half.writableEnded).toBe(false)
    }
    expect(await ask(question("last"))).toMatchObject({ status: status.OK })
    expect(overloads).toEqual([])
  })

  it("shares the bound for held calls with the other reader", async () => {
    const user = `many-${way}`
    const other = WAYS.find((each) => each.way !== way)?.headers ?? {}
    await ask(question(user, 3))
    await ask(question(`${user}-2`, 3))
    await ask(question(`${user}-3`, 3))
    // One caller may use two of the three places.
    const held = [user, `${user}-2`].map((each) => {
      const stream = beginCall(session, FORWARD, other)
      const answer = answerTo(stream)
      stream.end(framed(question(each, 3)))
      return { stream, answer }
    })
    // Only calls with the same reader are read in order.
    const later = beginCall(session, FORWARD, other)
    const answer = answerTo(later)
    later.end(framed(question("later")))
    expect(await answer).toMatchObject({ status: status.OK })
    const refused = await ask(question(`${user}-3`, 3))
    expect(refused.status).toBe(status.UNAVAILABLE)
    expect(refused.message).toMatch(/held/)
    expect(Number(refused.headers["grpc-retry-pushback-ms"])).toBeGreaterThanOrEqual(500)
    for (const { stream } of held) stream.close(CANCEL)
    await Promise.all(held.map((each) => each.answer))
    const late = { "grpc-timeout": "50m" }
    await until(
      "there is room",
      async () => (await ask(question(`${user}-3`, 3), late)).status === status.DEADLINE_EXCEEDED,
    )
  })

  it("is subject to the bound for arriving calls and to the arrival timeout", async () => {
    overloads.length = 0
    const half = [1, 2, 3].map(() => {
      const stream = begin()
      stream.write(Buffer.from([0, 0, 0, 0, 9, 8]))
      const answer = answerTo(stream)
      return { stream, answer }
    })
    const responses = half.map(({ stream }) => once(stream, "response"))
    // A call that arrives immediately does not count as arriving. One more call that does not arrive ends the oldest
    // call.
    expect(await ask(question("one-more"))).toMatchObject({ status: status.OK })
    const more = begin()
    more.write(Buffer.from([0]))
    const ended = (await Promise.all(responses)).map(([response]) => response)
    expect(ended.map((response) => Number(response["grpc-status"]))).toEqual([
      status.UNAVAILABLE,
      status.DEADLINE_EXCEEDED,
      status.DEADLINE_EXCEEDED,
    ])
    expect(Number(ended[0]?.["grpc-retry-pushback-ms"])).toBeGreaterThanOrEqual(500)
    expect(overloads).toEqual(["arriving"])
    for (const { stream } of half) stream.close(CANCEL)
    more.close(CANCEL)
    expect(await ask(question("whole"))).toMatchObject({ status: status.OK })
  })

  it("frees its capacity if its caller disconnects before the call has arrived", async () => {
    for (let round = 0; round < 10; round++) {
      const stream = begin()
      stream.write(Buffer.from([0, 0]))
      // When a later call is answered, the server has received both writes.
      expect(await ask(question("meanwhile"))).toMatchObject({ status: status.OK })
      stream.close(CANCEL)
    }
  })
})
