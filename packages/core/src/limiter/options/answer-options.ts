import type { Decision } from "../../decision/decision.ts"
import type { MaybePromise } from "../../ground/maybe-promise.ts"

/** The format of rate limits in response headers. */
export type HeaderDialect =
  /** `RateLimit-Policy: "name";q=100;w=60`, `RateLimit: "name";r=50;t=30` (draft-ietf-httpapi-ratelimit-headers-11). */
  | "draft-11"
  /** The editor's draft after draft-11: `RateLimit: "name";a=50;w=30;c=1`. */
  | "next"
  /** `RateLimit-Limit`, `RateLimit-Remaining`, `RateLimit-Reset` (seconds from now), `RateLimit-Policy: 100;w=60`. */
  | "triple"
  /** `X-RateLimit-Limit`, `X-RateLimit-Remaining`, `X-RateLimit-Reset` (epoch seconds). */
  | "legacy"

/** Every dialect, the default first. */
export const HEADER_DIALECTS: readonly HeaderDialect[] = ["draft-11", "next", "triple", "legacy"]

/** One response header line: field name and value. */
export type HeaderLine = readonly [name: string, value: string]

/** The answer that is sent to a refused client, besides the rate limit headers. */
export interface RejectionAnswer {
  /** A whole number from 200 to 599. */
  readonly status: number
  /** Names and values. If a name occurs several times, the last line counts; for `Set-Cookie`, all lines do. */
  readonly headers: readonly HeaderLine[]
  /** The body as text. Its length is sent in bytes. */
  readonly body: string
}

/** The standard answer to a refused client, as passed to the app's `onRejected`. */
export interface Rejection extends RejectionAnswer {
  /** 429, or 400 if the request lacks a field, or 503 if the store is unavailable and the rule fails closed. */
  readonly status: 429 | 400 | 503
  /** Retry-After if the request can succeed later, Cache-Control and Content-Type. */
  readonly headers: readonly HeaderLine[]
  /** A problem (RFC 9457) as JSON text, or lines of text for a client that does not accept JSON. */
  readonly body: string
}

/**
 * A callback that takes over the answer to a refused request. Its arguments are the framework's own request, the answer
 * that would be sent, the decision, and the framework's own response. On Koa, request and response are both the
 * context. On Fastify, the response is the reply. Each adapter sets the types of both.
 *
 * The return value is sent instead, with any status. If the callback returns nothing and has not answered itself, the
 * standard answer is sent. `false` means that the callback answers itself, now or later, so nothing is sent. Rate limit
 * headers and `Retry-After` are already set by then.
 */
export type OnRejected<Request, Response = unknown> = (
  request: Request,
  rejection: Rejection,
  decision: Decision,
  response: Response,
) => // Not `false`: TypeScript would infer `boolean` for an async function that returns it.
  | RejectionAnswer
  | NodeResponse
  | boolean
  | undefined
  | PromiseLike<RejectionAnswer | NodeResponse | boolean | undefined>
  | MaybePromise<void>

/**
 * The return value of a handler such as `(req, rejection, decision, res) => res.status(402).json({})`. The response has
 * been sent, so this value is not an answer.
 */
export interface NodeResponse {
  /** A member of `http.ServerResponse`, which Express extends. */
  readonly headersSent: boolean
}
