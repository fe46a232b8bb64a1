/** The gRPC status codes that the service uses: https://grpc.github.io/grpc/core/md_doc_statuscodes.html */
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

/** A gRPC status code. */
export type Code = (typeof Code)[keyof typeof Code]

/** A problem with one field of a request, such as `rules[1].rate.unit`. */
export interface FieldViolation {
  readonly field: string
  readonly description: string
}

/**
 * An error with a gRPC status code, for a call that fails. Each server converts the error to its protocol, and the
 * caller receives the message.
 */
export class StatusError extends Error {
  override readonly name = "StatusError"
  readonly code: Code
  readonly violations: readonly FieldViolation[]

  constructor(code: Code, message: string, violations: readonly FieldViolation[] = []) {
    // Skip the stack, because the error becomes a response and its stack is never shown. During an attack, creating
    // stacks took more time than the responses.
    const { stackTraceLimit } = Error
    Error.stackTraceLimit = 0
    super(message)
    Error.stackTraceLimit = stackTraceLimit
    this.code = code
    this.violations = violations
  }
}

/** The error for a message that is not parsed, because parsing its fields would take too long. */
export class CostlyMessageError extends StatusError {}

/** The error for a call whose token is missing or wrong. */
export class TokenError extends StatusError {}

/**
 * Average delay in milliseconds before a refused caller should retry. The actual delay is random, from 0.5 to 1.5
 * times this value.
 */
const RETRY_MS = 1_000

/** The error for a call that is refused because the service is overloaded. The same call may succeed a little later. */
export class OverloadError extends StatusError {
  /**
   * Delay before the caller should retry. The delay is randomized, so that refused callers do not all retry at the
   * same time.
   */
  readonly retryAfterMs: number

  constructor(message: string) {
    super(Code.UNAVAILABLE, message)
    this.retryAfterMs = Math.round(RETRY_MS * (0.5 + Math.random()))
  }
}

/**
 * Creates the error for a request with invalid fields. The message contains the first violation, and the details
 * contain all of them.
 */
export function invalidArgument(...violations: readonly [FieldViolation, ...FieldViolation[]]): StatusError {
  const [{ field, description }] = violations
  const more = violations.length > 1 ? ` (and ${violations.length - 1} more)` : ""
  return new StatusError(Code.INVALID_ARGUMENT, `${field}: ${description}${more}`, violations)
}

/**
 * Maximum characters of a message, and of all violations together. Both are sent in header fields, and some clients
 * (gRPC for Java) accept only 8 KiB of header fields. If a server tries to send more than 64 KiB of header fields, it
 * sends nothing, and the caller would wait forever.
 */
const LONGEST_MESSAGE = 500
const LONGEST_VIOLATIONS = 3_000

/**
 * Returns the error, shortened to fit into header fields. The message still contains the number of further
 * violations, unless the message itself is cut.
 */
export function shortened(error: StatusError): StatusError {
  let length = 0
  const violations: FieldViolation[] = []
  for (const { field, description } of error.violations) {
    const cut = { field: shortText(field), description: shortText(description) }
    length += cut.field.length + cut.description.length
    if (length > LONGEST_VIOLATIONS) break
    violations.push(cut)
  }
  if (error instanceof OverloadError) return error
  return new StatusError(error.code, shortText(error.message), violations)
}

function shortText(text: string): string {
  const cut = text.length <= LONGEST_MESSAGE ? text : `${text.slice(0, LONGEST_MESSAGE)}…`
  // Replace lone surrogates, which cannot be sent in a header field. The cut may have split a character, or the text
  // may already contain a lone surrogate.
  return Buffer.from(cut).toString()
}
