import { RuleSourceError, textOf } from "../../ground/errors.ts"

/** What could not be done, for the message. */
export interface CallDescription {
  /** The sentence that failed: `The rules of service "checkout" in DynamoDB table "rules" cannot be read`. */
  readonly what: string
  /** The call, as IAM policies name it: "GetItem". */
  readonly action: string
  /** What may be done where the call is not permitted, other than to permit it: "give the option keyType". */
  readonly otherwise?: string
}

/** Something is wrong with the table itself, whatever DynamoDB says. The message says what, and what to do. */
export class TableError extends Error {}

/** DynamoDB did not answer in time. The call may still be carried out. */
export class DeadlineError extends Error {
  constructor(timeoutMs: number) {
    super(`no answer within ${timeoutMs} ms`)
    this.name = "DeadlineError"
  }
}

/** The failed attempt as an error that says why, and what to do about it. */
export function failure(attempt: CallDescription, error: unknown): RuleSourceError {
  return new RuleSourceError(`${attempt.what}: ${reason(error, attempt)}`, { cause: error })
}

/** Whether a single attempt that failed with this error changed nothing: it was refused, or never arrived. */
export function changedNothing(error: unknown): boolean {
  const { code, $metadata: { httpStatusCode = 0 } = {} } = details(error)
  return (httpStatusCode >= 400 && httpStatusCode < 500) || NEVER_SENT.has(String(code))
}

/** The name of an error: of one from DynamoDB its code, such as "ResourceNotFoundException". */
export function nameOf(error: unknown): string {
  return details(error).name
}

/** The name of the error behind a failed attempt. */
export function causeName(error: unknown): string {
  return error instanceof RuleSourceError ? nameOf(error.cause) : ""
}

/** The message of the error behind a failed attempt: what DynamoDB said. */
export function messageBehind(error: RuleSourceError): string {
  return details(error.cause).message
}

interface Details {
  readonly name: string
  readonly code?: unknown
  readonly message: string
  readonly $metadata?: { readonly httpStatusCode?: number }
}

function details(error: unknown): Details {
  if (error instanceof Error) return error
  return { name: "", message: textOf(error) }
}

function reason(error: unknown, { action, otherwise }: CallDescription): string {
  if (error instanceof TableError) return error.message
  if (error instanceof DeadlineError) {
    return `${error.message}; see whether the client's region and endpoint are right and can be reached, or raise timeoutMs`
  }
  const { name, code, message, $metadata: { httpStatusCode = 0 } = {} } = details(error)
  const said = message === "" ? name : message
  if (isCredentialsError(name)) {
    return `the client has no credentials (${said}); give it some, or run where a role gives them`
  }
  if (isNoRegion(error)) return "the client has no region; set AWS_REGION, or give the client a region"
  switch (name) {
    case "ResourceNotFoundException":
      return "there is no such table; create it, or correct tableName, or the client's region or endpoint"
    case "AccessDeniedException":
      return `not permitted (${said}); allow dynamodb:${action} on the table${otherwise === undefined ? "" : `, or ${otherwise}`}`
    case "UnrecognizedClientException":
    case "InvalidSignatureException":
    case "IncompleteSignatureException":
    case "MissingAuthenticationTokenException":
    case "InvalidClientTokenId":
    case "ExpiredTokenException":
      return `the client's credentials are not accepted (${said}); renew or correct them, and see whether this machine's clock is right`
    case "ProvisionedThroughputExceededException":
    case "ThrottlingException":
    case "RequestLimitExceeded":
      return `throttled (${said}); give the table more capacity or bill it on demand, or poll less often`
    default:
  }
  if (typeof code === "string" && UNREACHABLE.has(code)) {
    // Node's error for a host with several addresses has no message.
    return `DynamoDB cannot be reached (${message === "" ? code : message}); correct the client's region or endpoint, or see to the network`
  }
  if (httpStatusCode >= 500) return `DynamoDB failed (${httpStatusCode} ${said}); try again later`
  return said
}

/** Codes of the system for what did not get there. */
const NEVER_SENT: ReadonlySet<string> = new Set([
  "ENOTFOUND",
  "EAI_AGAIN",
  "ECONNREFUSED",
  "EHOSTUNREACH",
  "ENETUNREACH",
])
/** The same, and for what may have got there and did not come back. */
const UNREACHABLE: ReadonlySet<string> = new Set([...NEVER_SENT, "ECONNRESET", "EPIPE", "ETIMEDOUT"])

function isCredentialsError(name: string): boolean {
  return name === "CredentialsProviderError" || name === "TokenProviderError"
}

/** The SDK has no name for this one. */
function isNoRegion(error: unknown): boolean {
  return details(error).message === "Region is missing"
}
