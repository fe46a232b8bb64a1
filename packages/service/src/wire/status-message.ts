import { create, toBinary } from "@bufbuild/protobuf"
import { anyPack } from "@bufbuild/protobuf/wkt"
import { BadRequestSchema } from "../gen/google/rpc/error_details_pb.ts"
import { type Status, StatusSchema } from "../gen/google/rpc/status_pb.ts"
import { OverloadError, type StatusError } from "../status-error.ts"

/**
 * Returns the error as google.rpc.Status. Invalid fields are added as google.rpc.BadRequest: https://google.aip.dev/193
 */
export function statusMessage({ code, message, violations }: StatusError): Status {
  const fieldViolations = violations.map(({ field, description }) => ({ field, description }))
  const details =
    violations.length === 0 ? [] : [anyPack(BadRequestSchema, create(BadRequestSchema, { fieldViolations }))]
  return create(StatusSchema, { code, message, details })
}

/** Returns the bytes of the error's google.rpc.Status, which gRPC sends as `grpc-status-details-bin`. */
export function statusBytes(error: StatusError): Buffer {
  return Buffer.from(toBinary(StatusSchema, statusMessage(error)))
}

/**
 * Returns the header with which clients delay a retry:
 * https://github.com/grpc/proposal/blob/master/A6-client-retries.md#pushback
 */
export function pushbackHeaders(error: StatusError): Record<string, string> | undefined {
  return error instanceof OverloadError ? { "grpc-retry-pushback-ms": String(error.retryAfterMs) } : undefined
}
