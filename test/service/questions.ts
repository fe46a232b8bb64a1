import { create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf"
import {
  ShouldForwardRequestRequestSchema,
  type ShouldForwardRequestResponse,
  ShouldForwardRequestResponseSchema,
} from "../../packages/service/src/gen/sluice/v1/rate_limiter_pb.ts"
import type { RawAnswer } from "./raw-call.ts"

export const FORWARD = "/sluice.v1.RateLimiter/ShouldForwardRequest"

/**
 * Headers that make a call one that the door reads and answers itself, and one that @grpc/grpc-js does: that which names a
 * compression, even where its message says that it is not compressed.
 */
export const WAYS = [
  { way: "the door itself", headers: {} },
  { way: "@grpc/grpc-js", headers: { "grpc-encoding": "gzip" } },
] as const

type Asked = MessageInitShape<typeof ShouldForwardRequestRequestSchema>

/** A request of a user, about a service of `WAITING`. */
export function question(user: string, serviceId = 1, more: Asked = {}): Uint8Array {
  return bytesOf({ serviceId, request: JSON.stringify({ user }), ...more })
}

/** Any request, as its bytes. */
export function bytesOf(asked: Asked): Uint8Array {
  return toBinary(ShouldForwardRequestRequestSchema, create(ShouldForwardRequestRequestSchema, asked))
}

/** The decision that an answer has. */
export function decisionOf({ bytes }: RawAnswer): ShouldForwardRequestResponse {
  return fromBinary(ShouldForwardRequestResponseSchema, bytes.subarray(5))
}
