import type { Decision } from "../decision/decision.ts"
import type { Rejection, RejectionText } from "../ground/answer.ts"

/**
 * A function that returns the body of the response to one refused request: a string, or an object or an array that is
 * sent as JSON. `rejection` is the standard response, with the status of this response.
 */
export type RejectionBody<Request = unknown> = (
  request: Request,
  rejection: Rejection,
  decision: Decision,
) => string | Readonly<Record<string, unknown>> | readonly unknown[]

/**
 * The response to requests that are refused with 429, instead of the standard one, such as
 * `{ body: { error: "slow down" } }`. The headers, such as Retry-After, are still sent.
 */
export interface RuleRejection<Request = unknown> {
  /** The status, a whole number from 400 to 599. Default: 429. */
  readonly status?: number | undefined
  /**
   * A string is sent unchanged, and an object or an array as JSON. In code, also a function that returns one of
   * these. At most 16,384 characters. Default: problem details (RFC 9457) with this response's `status`.
   */
  readonly body?:
    | string
    | Readonly<Record<string, unknown>>
    | readonly unknown[]
    | RejectionBody<Request>
    | undefined
  /** The media type of the body. Default: "text/plain; charset=utf-8" for a string, otherwise "application/json". */
  readonly contentType?: string | undefined
}

/** A {@link RuleRejection} that was checked. */
export interface ParsedRejection {
  /** Absent means 429. */
  readonly status?: number
  /** The body as it is sent, or the app's function. Absent means the standard body. */
  readonly body?: RejectionText | ((request: unknown, rejection: Rejection, decision: Decision) => unknown)
  /** The media type of the function's result. Absent means that the media type depends on the result. */
  readonly contentType?: string
}
