import { Readable } from "node:stream"
import { HttpException, StreamableFile } from "@nestjs/common"
import type { Decision, RejectionAnswer } from "@sluice/core"
import type { RefusalError } from "@sluice/core/adapters"

/**
 * The exception of a refused request. Nest's exception filters send its response. The rate limit headers and
 * `Retry-After` are set before that.
 */
export class RateLimitException extends HttpException {
  /** The code of all refusals, as in `RateLimitExceededError`. */
  readonly code = "SLUICE_RATE_LIMIT_EXCEEDED"
  /** The refused decision, for which no units were taken. */
  readonly decision: Decision
  /** The response that Nest sends without a filter of the app. */
  readonly rejection: RejectionAnswer

  /** Creates the exception of a refused request. */
  constructor({ decision, message, rejection }: RefusalError) {
    super(message, rejection.status)
    this.decision = decision
    this.rejection = rejection
  }

  /** The milliseconds until the same request would be admitted; Infinity if that never happens. */
  get retryAfterMs(): number {
    return this.decision.retryAfterMs
  }

  /** The members that an error of GraphQL or of a WebSocket shows to the client. */
  get extensions(): object {
    return { code: this.code, retryAfterMs: this.retryAfterMs }
  }

  /**
   * Returns the body of the response. Its members are those of the JSON of the body, for filters of the app. If the body
   * is not a JSON object, its only member is `message`. Nest's own filter sends the body unchanged, with its media type.
   */
  override getResponse(): object {
    const { body, headers } = this.rejection
    const type = headers.findLast(([name]) => name.toLowerCase() === "content-type")?.[1] ?? "text/plain"
    // Nest would replace the media type of another object, and wrap a string in JSON. Nest sends the length of a buffer,
    // but the status 204 must not have a length (RFC 9110, section 8.6).
    const file =
      body === ""
        ? new StreamableFile(Readable.from([]), { type })
        : new StreamableFile(Buffer.from(body), { type })
    const members = Object.entries(membersOf(body, type)).filter(([name]) => !(name in file))
    return Object.create(file, Object.getOwnPropertyDescriptors(Object.fromEntries(members)))
  }
}

function membersOf(body: string, type: string): object {
  try {
    const parsed: unknown = /[/+]json\b/i.test(type) ? JSON.parse(body) : undefined
    if (typeof parsed === "object" && parsed !== null && !Array.isArray(parsed)) return parsed
  } catch {
    // The app's own response may contain invalid JSON.
  }
  return { message: body }
}
