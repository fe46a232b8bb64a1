import { create, type DescMessage, toBinary, toJson } from "@bufbuild/protobuf"
import { BadRequestSchema } from "../gen/google/rpc/error_details_pb.ts"
import { StatusSchema } from "../gen/google/rpc/status_pb.ts"
import { Code, OverloadError, type StatusError } from "../status-error.ts"

/** Connect's names for the codes, with their HTTP statuses: https://connectrpc.com/docs/protocol#error-codes */
const SAID: Readonly<Record<Exclude<Code, typeof Code.OK>, readonly [name: string, status: number]>> = {
  [Code.CANCELLED]: ["canceled", 499],
  [Code.INVALID_ARGUMENT]: ["invalid_argument", 400],
  [Code.DEADLINE_EXCEEDED]: ["deadline_exceeded", 504],
  [Code.NOT_FOUND]: ["not_found", 404],
  [Code.PERMISSION_DENIED]: ["permission_denied", 403],
  [Code.RESOURCE_EXHAUSTED]: ["resource_exhausted", 429],
  [Code.FAILED_PRECONDITION]: ["failed_precondition", 400],
  [Code.ABORTED]: ["aborted", 409],
  [Code.UNIMPLEMENTED]: ["unimplemented", 501],
  [Code.INTERNAL]: ["internal", 500],
  [Code.UNAVAILABLE]: ["unavailable", 503],
  [Code.UNAUTHENTICATED]: ["unauthenticated", 401],
}

/** An error in the format of Connect's unary calls. */
export interface HttpError {
  readonly status: number
  readonly body: {
    readonly code: string
    readonly message: string
    readonly details?: readonly object[]
    /**
     * Set only if the response message of the call has fields with these names, which then describe the failure too.
     */
    readonly status?: { readonly code: number; readonly message: string }
    readonly error?: string
  }
}

/**
 * Returns the response of a failed call. Invalid fields are added as google.rpc.BadRequest, in base64 and in readable
 * form.
 */
export function httpError(
  { code, message, violations }: StatusError,
  output: DescMessage | undefined,
): HttpError {
  const [name, status] = SAID[code as keyof typeof SAID]
  const own = output?.field.status?.message?.typeName === StatusSchema.typeName
  const filled = own ? { status: { code, message }, error: message } : {}
  if (violations.length === 0) return { status, body: { code: name, message, ...filled } }
  const detail = create(BadRequestSchema, {
    fieldViolations: violations.map(({ field, description }) => ({ field, description })),
  })
  const value = Buffer.from(toBinary(BadRequestSchema, detail)).toString("base64").replace(/=+$/, "")
  const debug = toJson(BadRequestSchema, detail)
  const details = [{ type: BadRequestSchema.typeName, value, debug }]
  return { status, body: { code: name, message, details, ...filled } }
}

/** Returns the headers that specify when to retry a failed call. */
export function retryHeaders(error: StatusError): Readonly<Record<string, string>> {
  if (!(error instanceof OverloadError)) return {}
  return { "retry-after": String(Math.ceil(error.retryAfterMs / 1_000)) }
}
