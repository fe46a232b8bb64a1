import { toBinary } from "@bufbuild/protobuf"
import { StatusSchema } from "../gen/google/rpc/status_pb.ts"
import type { ShouldForwardRequestResponse } from "../gen/sluice/v1/rate_limiter_pb.ts"
import { WireBuffer } from "./wire-buffer.ts"

// Writes the two response messages for decisions field by field. `toBinary` takes longer, because it inspects the
// schema of every message (decision 0011 contains the figures). Tests check that both produce the same bytes.

const wire = new WireBuffer()

/**
 * Returns the bytes of a response. The numbers in the response must be at most 2^53 - 1, which holds for all numbers
 * of a limiter.
 */
export function answerBytes(answer: ShouldForwardRequestResponse): Uint8Array {
  wire.restart()
  write(answer)
  return wire.written()
}

/**
 * Returns the bytes of a ShouldForwardRequestsResponse with these responses. The bytes of several such messages may be
 * joined into one message.
 */
export function answersBytes(responses: readonly ShouldForwardRequestResponse[]): Uint8Array {
  wire.restart()
  for (const answer of responses) {
    const begun = wire.begin(1)
    write(answer)
    wire.end(begun)
  }
  return wire.written()
}

function write(answer: ShouldForwardRequestResponse): void {
  const { retryAfterMs, headers, error, renewWithinMs } = answer
  wire.bool(1, answer.shouldForward)
  wire.string(2, answer.rejectionMessage)
  wire.optionalUint(3, retryAfterMs === undefined ? undefined : Number(retryAfterMs))
  wire.uint(4, Number(answer.limit))
  wire.uint(5, Number(answer.remaining))
  wire.string(6, answer.policy)
  for (const name in headers) {
    const begun = wire.begin(7)
    wire.repeatedString(1, name)
    wire.repeatedString(2, headers[name] as string)
    wire.end(begun)
  }
  wire.bool(8, answer.degraded)
  wire.uint(9, Number(answer.delayMs))
  wire.uint(10, Number(answer.resetAfterMs))
  wire.bool(11, answer.overLimit)
  for (const policy of answer.shadowed) wire.repeatedString(12, policy)
  wire.uint(13, answer.statusCode)
  wire.string(14, answer.body)
  if (error !== undefined) wire.bytes(15, toBinary(StatusSchema, error))
  wire.string(16, answer.reservation)
  wire.optionalUint(17, renewWithinMs === undefined ? undefined : Number(renewWithinMs))
}
