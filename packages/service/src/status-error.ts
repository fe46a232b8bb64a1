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
    // It is an answer, and nobody reads its stack. During an attack, stacks took more time than the answers.
    const { stackTraceLimit } = Error
    Error.stackTraceLimit = 0
    super(message)
    Error.stackTraceLimit = stackTraceLimit
    this.code = code
    this.violations = violations
  }
}

/** The error for a call whose token is missing or wrong. */
export class TokenError extends StatusError {}

/** Milliseconds after which a caller should try again that was refused because of too much work: half of it, and up to as much more. */
const RETRY_MS = 1_000

/** The error for a call that is refused because there is too much work. The same call may be answered a little later. */
export class OverloadError extends StatusError {
  /** When to try again. It differs between errors, so that refused callers do not all come back at once. */
  readonly retryAfterMs: number

  constructor(message: string) {
    super(Code.UNAVAILABLE, message)
    this.retryAfterMs = Math.round(RETRY_MS * (0.5 + Math.random()))
  }
}

/** A request with wrong fields: the message names the first, the details all of them. */
export function invalidArgument(...violations: readonly [FieldViolation, ...FieldViolation[]]): StatusError {
  const [{ field, description }] = violations
  const more = violations.length > 1 ? ` (and ${violations.length - 1} more)` : ""
  return new StatusError(Code.INVALID_ARGUMENT, `${field}: ${description}${more}`, violations)
}

/**
 * Characters of a message, and of all that is said of fields. They go into header fields, of which some clients take 8 KiB (gRPC's
 * for Java), and of which a server that has more than 64 KiB of them sends none at all, so that its caller would wait for ever.
 */
const LONGEST_MESSAGE = 500
const LONGEST_VIOLATIONS = 3_000

/** The same error, with no more to say than header fields hold: the message says how much of it there is. */
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
  // A character that was cut in two, or came so, is none, which no header field can hold either.
  return Buffer.from(cut).toString()
}
