import { once } from "node:events"
import { type ClientHttp2Session, constants } from "node:http2"
import { status } from "@grpc/grpc-js"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { openFrames } from "./frames.ts"
import { decisionOf, FORWARD, question } from "./questions.ts"
import { answerTo, beginCall, callOnce, callRaw, framed, openRaw } from "./raw-call.ts"
import { openService, startService, useService, WAITING } from "./started.ts"

const { NGHTTP2_CANCEL: CANCEL, NGHTTP2_NO_ERROR: NO_ERROR } = constants

describe("the gRPC endpoint", () => {
  const started = useService(WAITING)
  let session: ClientHttp2Session
  beforeAll(() => {
    session = openRaw(started.grpc)
  })
  afterAll(() => session.destroy())
  const ask = (headers: Readonly<Record<string, string>>) =>
    callRaw(session, FORWARD, question("left"), headers)

  it.each([
    ["a type that begins like gRPC's", { "content-type": "application/grpc;charset=utf-8" }, status.OK],
    ["an invalid timeout", { "grpc-timeout": "soon" }, status.INTERNAL],
    ["a timeout of nine digits", { "grpc-timeout": "123456789m" }, status.OK],
    ["a request that is not a POST", { ":method": "PUT" }, status.OK],
    ["an unknown method", { ":path": "/sluice.v1.RateLimiter/Nothing" }, status.UNIMPLEMENTED],
  ])("leaves a call with %s to grpc-js", async (_what, headers, code) => {
    const answer = await ask(headers as Record<string, string>)
    expect(answer.status).toBe(code)
    expect(answer.headers).toHaveProperty("date")
  })

  it("leaves a request that is not gRPC to grpc-js", async () => {
    expect((await ask({ "content-type": "text/plain" })).headers[":status"]).toBe(415)
  })

  it("does not leave ordinary calls to grpc-js", async () => {
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

  it("reads a call itself if its timeout is too long for Node's timers, and does not end it early", async () => {
    const held = (headers: Readonly<Record<string, string>>) => {
      const stream = beginCall(session, FORWARD, headers)
      const answer = answerTo(stream)
      stream.end(framed(question("patient", 2)))
      return { stream, answer }
    }
    expect((await held({}).answer).status).toBe(status.OK)
    // Use a timeout of about eleven thousand years.
    const patient = held({ "grpc-timeout": "99999999H" })
    let hasEnded = false
    patient.stream.on("response", () => {
      hasEnded = true
    })
    const other = beginCall(session, FORWARD, { "grpc-timeout": "50m" })
    other.write(Buffer.from([0]))
    const [late] = await once(other, "response")
    expect(Number(late["grpc-status"])).toBe(status.DEADLINE_EXCEEDED)
    other.close(CANCEL)
    expect(hasEnded).toBe(false)
    patient.stream.close(CANCEL)
    await patient.answer
  })

  it("refuses a compressed message if its call names no encoding", async () => {
    const stream = beginCall(session, FORWARD)
    const answer = answerTo(stream)
    stream.end(framed(question("left"), { flag: 1 }))
    expect(await answer).toMatchObject({ status: status.INTERNAL, bytes: Buffer.alloc(0) })
  })
})

it("a call takes no units if its caller disconnects between the message and the end of the request", async () => {
  const started = await openService(WAITING)
  const caller = openFrames(started.grpc)
  const begin = (stream: number) => {
    caller.headers(stream, { ":path": FORWARD, "content-type": "application/grpc" })
    caller.data(stream, framed(question("early")))
  }
  const reset = (stream: number) => caller.reset(stream, stream % 4 === 1 ? NO_ERROR : CANCEL)
  const [first, second] = [
    [1, 3, 5, 7],
    [9, 11, 13, 15],
  ] as const
  for (const stream of first) begin(stream)
  // The service reads the first streams before they are reset. The other streams arrive together with their resets.
  await caller.answered()
  for (const stream of first) reset(stream)
  for (const stream of second) {
    begin(stream)
    reset(stream)
  }
  await caller.answered()
  const peek = await callOnce(started.grpc, FORWARD, question("early", 1, { peek: true }))
  expect(decisionOf(peek)).toMatchObject({ remaining: 1_000_000n })
  caller.close()
})

it.each([
  ["longer than the maximum", framed(Buffer.alloc(0), { length: 2 ** 32 - 1 }), status.RESOURCE_EXHAUSTED],
  ["two messages", Buffer.concat([framed(question("two")), framed(question("two"))]), status.UNIMPLEMENTED],
  ["late", Buffer.from([0]), status.DEADLINE_EXCEEDED],
])("a call that is %s is refused without waiting for the rest", async (_what, bytes, code) => {
  const started = await startService(WAITING, {
    bounds: { maxMessageBytes: 1_000, maxInFlight: 3, maxRequests: 20, arrivalMs: 100 },
  })
  const session = openRaw(started.grpc)
  const stream = beginCall(session, FORWARD)
  const answer = answerTo(stream)
  // Do not send the rest of the body, like clients (such as Connect's) during an upload.
  stream.write(bytes)
  expect(await answer).toMatchObject({ status: code })
  expect(stream.rstCode).toBe(NO_ERROR)
  // The service can drain even though its client stays connected.
  expect(await started.end(5_000)).toBe(true)
  session.destroy()
  expect(started.faults).toEqual([])
})
