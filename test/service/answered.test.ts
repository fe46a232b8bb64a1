import { create, type MessageInitShape, toBinary } from "@bufbuild/protobuf"
import { status } from "@grpc/grpc-js"
import { expect, it } from "vitest"
import { ShouldForwardRequestRequestSchema } from "../../packages/service/src/gen/sluice/v1/rate_limiter_pb.ts"
import { until } from "../servers/until.ts"
import { answerTo, beginCall, framed, openRaw } from "./raw-call.ts"
import { startService, WAITING } from "./started.ts"
import { openStranger } from "./stranger.ts"

type MessageInit = MessageInitShape<typeof ShouldForwardRequestRequestSchema>

const PATH = "/sluice.v1.RateLimiter/ShouldForwardRequest"
/** Sends a request over gRPC with a timeout in its headers. The caller relies on the service to end the call. */
async function askUntilLate(address: string, request: MessageInit): Promise<void> {
  const session = openRaw(address)
  const stream = beginCall(session, PATH, { "grpc-timeout": "200m" })
  const ended = answerTo(stream)
  const message = create(ShouldForwardRequestRequestSchema, request)
  stream.end(framed(toBinary(ShouldForwardRequestRequestSchema, message)))
  await ended
  session.destroy()
}

it("every answered call is reported once, with its protocol, method and code", async () => {
  const told: unknown[][] = []
  let leastMs = Number.POSITIVE_INFINITY
  const started = await startService(WAITING, {
    bounds: { maxMessageBytes: 100_000, maxInFlight: 2, maxRequests: 20, arrivalMs: 500 },
    onAnswered(door, path, code, durationMs) {
      told.push([door, path, code])
      leastMs = Math.min(leastMs, durationMs)
    },
  })
  const stranger = openStranger(started.grpc, "sluice/v1/rate_limiter.proto", "sluice.v1.RateLimiter")
  const ask = (request: object) => stranger.call("ShouldForwardRequest", request)
  const post = async (body: object, headers = {}): Promise<void> => {
    const asked = { method: "POST", headers: { "content-type": "application/json", ...headers } }
    await (await fetch(started.http + PATH, { ...asked, body: JSON.stringify(body) })).text()
  }
  const next = async (action: () => Promise<unknown>): Promise<unknown> => {
    const before = told.length
    await action()
    // The caller may get its answer before the event is emitted.
    await until("it is told", () => told.length > before)
    return told.slice(before)
  }
  const held = { serviceId: 2, request: '{"user":"held"}' }
  expect(await next(() => ask({ service_id: 2, request: held.request }))).toEqual([["grpc", PATH, status.OK]])
  expect(await next(() => ask({}))).toEqual([["grpc", PATH, status.INVALID_ARGUMENT]])
  expect(await next(() => askUntilLate(started.grpc, held))).toEqual([
    ["grpc", PATH, status.DEADLINE_EXCEEDED],
  ])
  expect(await next(() => post({ serviceId: 1, request: "{}" }))).toEqual([["http", PATH, status.OK]])
  expect(await next(() => post({}))).toEqual([["http", PATH, status.INVALID_ARGUMENT]])
  const late = { "connect-timeout-ms": "50" }
  expect(await next(() => post(held, late))).toEqual([["http", PATH, status.DEADLINE_EXCEEDED]])
  expect(leastMs).toBeGreaterThanOrEqual(0)
  stranger.close()
  await started.stop()
})
