import { create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf"
import {
  ShouldForwardRequestRequestSchema,
  type ShouldForwardRequestResponse,
  ShouldForwardRequestResponseSchema,
} from "../../packages/service/src/gen/sluice/v1/rate_limiter_pb.ts"
import type { RawAnswer } from "./raw-call.ts"

export const FORWARD = "/sluice.v1.RateLimiter/ShouldForwardRequest"

/**
 * The ways to read a call. The grpc-js library reads a call that names a compression, even if its message is not
 * compressed. When plain calls are disabled, the library reads every call.
 */
export const WAYS = [
  { way: "the door itself", reader: "plain", headers: {}, plainCalls: true },
  { way: "@grpc/grpc-js", reader: "grpc-js", headers: { "grpc-encoding": "gzip" }, plainCalls: true },
  { way: "@grpc/grpc-js without plain calls", reader: "grpc-js", headers: {}, plainCalls: false },
] as const

type Asked = MessageInitShape<typeof ShouldForwardRequestRequestSchema>

/** Returns the bytes of a request of a user for a service of `WAITING`. */
export function question(user: string, serviceId = 1, more: Asked = {}): Uint8Array {
  return bytesOf({ serviceId, request: JSON.stringify({ user }), ...more })
}

/** Returns the bytes of any request message. */
export function bytesOf(asked: Asked): Uint8Array {
  return toBinary(ShouldForwardRequestRequestSchema, create(ShouldForwardRequestRequestSchema, asked))
}

/** Returns the decision in a response. */
export function decisionOf({ bytes }: RawAnswer): ShouldForwardRequestResponse {
  return fromBinary(ShouldForwardRequestResponseSchema, bytes.subarray(5))
}
