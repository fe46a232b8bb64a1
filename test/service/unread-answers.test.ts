import { once } from "node:events"
import { type ClientHttp2Session, connect } from "node:http2"
import { create, toBinary } from "@bufbuild/protobuf"
import { expect, it } from "vitest"
import { ShouldForwardRequestsRequestSchema } from "../../packages/service/src/gen/sluice/v1/rate_limiter_pb.ts"
import { framed } from "./raw-call.ts"
import { startService, TWO_SERVICES } from "./started.ts"
import { openStranger } from "./stranger.ts"

/** Returns a batch of this many requests in a gRPC frame. */
function question(requests: number): Buffer {
  const one = { serviceId: 1, request: '{"user_id":"a"}' }
  const message = create(ShouldForwardRequestsRequestSchema, { requests: Array(requests).fill(one) })
  return framed(toBinary(ShouldForwardRequestsRequestSchema, message))
}

/** Sends a call without reading its answer. Resolves with "answered" when the answer has begun, or with the error. */
async function ask(session: ClientHttp2Session, bytes: Buffer): Promise<string> {
  const path = "/sluice.v1.RateLimiter/ShouldForwardRequests"
  const stream = session.request({ ":method": "POST", ":path": path, "content-type": "application/grpc" })
  stream.end(bytes)
  try {
    await once(stream, "response")
    // Ignore the error that comes with the end of the connection.
    stream.on("error", () => undefined)
    return "answered"
  } catch (error) {
    return (error as Error).message
  }
}

it("unread answers are buffered up to a bound per connection, which ends if its peer continues", async () => {
  const started = await startService(TWO_SERVICES)
  // With this window, the server may not send any byte of an answer.
  const session = connect(`http://${started.grpc}`, { settings: { initialWindowSize: 0 } })
  session.on("error", () => undefined)
  const closed = new Promise((resolve) => session.once("close", resolve))
  const bytes = question(10_000)
  let answered = 0
  let refusal = "answered"
  while (refusal === "answered" && answered < 200) {
    refusal = await ask(session, bytes)
    answered++
  }
  expect(refusal).toContain("NGHTTP2_ENHANCE_YOUR_CALM")
  const small = question(1)
  while (!session.destroyed) await ask(session, small).catch(() => undefined)
  await closed
  const other = openStranger(started.grpc, "sluice/v1/rate_limiter.proto", "sluice.v1.RateLimiter")
  expect(
    await other.call("ShouldForwardRequest", { service_id: 1, request: '{"user_id":"b"}' }),
  ).toMatchObject({ value: { should_forward: true } })
  other.close()
  await started.stop()
  expect(started.faults).toEqual([])
})
