import { create, toBinary } from "@bufbuild/protobuf"
import { anyPack } from "@bufbuild/protobuf/wkt"
import { BadRequestSchema } from "./gen/google/rpc/error_details_pb.ts"
import { type Status, StatusSchema } from "./gen/google/rpc/status_pb.ts"
import type { StatusError } from "./status-error.ts"

/** The error as google.rpc.Status, with a google.rpc.BadRequest where fields are wrong: https://google.aip.dev/193 */
export function statusMessage({ code, message, violations }: StatusError): Status {
  const fieldViolations = violations.map(({ field, description }) => ({ field, description }))
  const details =
    violations.length === 0 ? [] : [anyPack(BadRequestSchema, create(BadRequestSchema, { fieldViolations }))]
  return create(StatusSchema, { code, message, details })
}

/** The same as its bytes, which gRPC sends as `grpc-status-details-bin`. */
export function statusBytes(error: StatusError): Buffer {
  return Buffer.from(toBinary(StatusSchema, statusMessage(error)))
}
