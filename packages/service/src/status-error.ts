/** The status codes of gRPC that are answered here: https://grpc.github.io/grpc/core/md_doc_statuscodes.html */
export const Code = {
  OK: 0,
  CANCELLED: 1,
  INVALID_ARGUMENT: 3,
  DEADLINE_EXCEEDED: 4,
  NOT_FOUND: 5,
  PERMISSION_DENIED: 7,
  RESOURCE_EXHAUSTED: 8,
  FAILED_PRECONDITION: 9,
  ABORTED: 10,
  UNIMPLEMENTED: 12,
  INTERNAL: 13,
  UNAVAILABLE: 14,
  UNAUTHENTICATED: 16,
} as const

/** A number of `Code`. */
export type Code = (typeof Code)[keyof typeof Code]

/** What is wrong with one field of a request: `rules[1].rate.unit`. */
export interface FieldViolation {
  readonly field: string
  readonly description: string
}

/** A call that fails, in the words of gRPC; each door says it in its own way. Its message is for the caller. */
export class StatusError extends Error {
  override readonly name = "StatusError"
  readonly code: Code
  readonly violations: readonly FieldViolation[]

  constructor(code: Code, message: string, violations: readonly FieldViolation[] = []) {
    super(message)
    this.code = code
    this.violations = violations
  }
}

/** A request with wrong fields: the message names the first, the details all of them. */
export function invalidArgument(...violations: readonly [FieldViolation, ...FieldViolation[]]): StatusError {
  const [{ field, description }] = violations
  const more = violations.length > 1 ? ` (and ${violations.length - 1} more)` : ""
  return new StatusError(Code.INVALID_ARGUMENT, `${field}: ${description}${more}`, violations)
}
