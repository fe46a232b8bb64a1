import { RuleSourceError } from "@sluice/core"
import { textOf } from "@sluice/core/kit"

/** A call, as its error message describes it. */
export interface CallDescription {
  /** Start of the message: `The rules of service "checkout" in DynamoDB table "rules" cannot be read`. */
  readonly what: string
  /** The call as IAM policies name it: "GetItem". */
  readonly action: string
  /** Alternative to granting the missing permission: "set the option keyType". */
  readonly otherwise?: string
}

/** A problem of the table itself that DynamoDB does not report. The message describes the problem and how to fix it. */
export class TableError extends Error {}

/** DynamoDB did not respond in time. The call may still be carried out. */
export class DeadlineError extends Error {
  constructor(timeoutMs: number) {
    super(`no response within ${timeoutMs} ms`)
    this.name = "DeadlineError"
  }
}

/** Converts the error of a failed call to an error that names the reason and the fix. */
export function failure(attempt: CallDescription, error: unknown): RuleSourceError {
  return new RuleSourceError(`${attempt.what}: ${reason(error, attempt)}`, { cause: error })
}

/** True if a single attempt with this error changed nothing, because the request was refused or never arrived. */
export function changedNothing(error: unknown): boolean {
  const { code, $metadata: { httpStatusCode = 0 } = {} } = details(error)
  return (httpStatusCode >= 400 && httpStatusCode < 500) || NEVER_SENT.has(String(code))
}

/** Returns the name of the error behind a failed call. */
export function causeName(error: unknown): string {
  return error instanceof RuleSourceError ? details(error.cause).name : ""
}

interface Details {
  readonly name: string
  readonly code?: unknown
  readonly message: string
  readonly $metadata?: { readonly httpStatusCode?: number }
}

/** Returns the details of an error. The name of a DynamoDB error is its code, such as "ResourceNotFoundException". */
export function details(error: unknown): Details {
  if (error instanceof Error) return error
  return { name: "", message: textOf(error) }
}

function reason(error: unknown, { action, otherwise }: CallDescription): string {
  if (error instanceof TableError) return error.message
  if (error instanceof DeadlineError) {
    return `${error.message}; check that the client's region and endpoint are correct and reachable, or raise timeoutMs`
  }
  const { name, code, message, $metadata: { httpStatusCode = 0 } = {} } = details(error)
  const said = message === "" ? name : message
  if (name === "CredentialsProviderError" || name === "TokenProviderError") {
    return `the client has no credentials (${said}); configure credentials, or run with an IAM role`
  }
  // The SDK does not give this error a name.
  if (message === "Region is missing")
    return "the client has no region; set AWS_REGION, or give the client a region"
  switch (name) {
    case "ResourceNotFoundException":
      return "the table does not exist; create it, or correct tableName or the client's region or endpoint"
    case "AccessDeniedException":
      return `not permitted (${said}); allow dynamodb:${action} on the table${otherwise === undefined ? "" : `, or ${otherwise}`}`
    case "UnrecognizedClientException":
    case "InvalidSignatureException":
    case "IncompleteSignatureException":
    case "MissingAuthenticationTokenException":
    case "InvalidClientTokenId":
    case "ExpiredTokenException":
      return `the client's credentials are not accepted (${said}); renew or correct them, and check this machine's clock`
    case "ProvisionedThroughputExceededException":
    case "ThrottlingException":
    case "RequestLimitExceeded":
      return `throttled (${said}); give the table more capacity, switch it to on-demand billing, or poll less often`
    default:
  }
  if (typeof code === "string" && UNREACHABLE.has(code)) {
    // Node's error for a host with several addresses has an empty message.
    return `DynamoDB cannot be reached (${message === "" ? code : message}); correct the client's region or endpoint, or check the network`
  }
  if (httpStatusCode >= 500) return `DynamoDB failed (${httpStatusCode} ${said}); try again later`
  return said
}

/** System error codes of requests that did not reach DynamoDB. */
const NEVER_SENT: ReadonlySet<string> = new Set([
  "ENOTFOUND",
  "EAI_AGAIN",
  "ECONNREFUSED",
  "EHOSTUNREACH",
  "ENETUNREACH",
])
/** Error codes of requests that did not reach DynamoDB or whose response was lost. */
const UNREACHABLE: ReadonlySet<string> = new Set([...NEVER_SENT, "ECONNRESET", "EPIPE", "ETIMEDOUT"])
