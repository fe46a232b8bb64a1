import type { Decision } from "../../decision/decision.ts"
import type { MaybePromise } from "../../ground/maybe-promise.ts"

/** How rate limits are written into response headers. */
export type HeaderDialect =
  /** `RateLimit-Policy: "name";q=100;w=60`, `RateLimit: "name";r=50;t=30` (draft-ietf-httpapi-ratelimit-headers-11). */
  | "draft-11"
  /** The editor's text after it: `RateLimit: "name";a=50;w=30;c=1`. */
  | "next"
  /** `RateLimit-Limit`, `RateLimit-Remaining`, `RateLimit-Reset` (seconds from now), `RateLimit-Policy: 100;w=60`. */
  | "triple"
  /** `X-RateLimit-Limit`, `X-RateLimit-Remaining`, `X-RateLimit-Reset` (epoch seconds). */
  | "legacy"

/** Every dialect, the default first. */
export const HEADER_DIALECTS: readonly HeaderDialect[] = ["draft-11", "next", "triple", "legacy"]

/** One response header line: field name and value. */
export type HeaderLine = readonly [name: string, value: string]

/** What is sent to a refused client, beside the rate limit headers. */
export interface RejectionAnswer {
  /** A whole number from 200 to 599. */
  readonly status: number
  /** Names and values. Of several lines with one name the last counts, of `Set-Cookie` all do. */
  readonly headers: readonly HeaderLine[]
  /** Text; its length is told in bytes. */
  readonly body: string
}

/** The standard answer to a refused client, which the app's `onRejected` is given. */
export interface Rejection extends RejectionAnswer {
  /** 429; 400 when the request lacks a field; 503 when the store is gone and the rule fails closed. */
  readonly status: 429 | 400 | 503
  /** Retry-After, when there is a time at which it can succeed; Cache-Control; Content-Type. */
  readonly headers: readonly HeaderLine[]
  /** A problem (RFC 9457) as JSON text, or lines of text for a client that does not take JSON. */
  readonly body: string
}

/**
 * Takes over the answer to a refused request. It gets the framework's own request (Koa: the context), the answer that
 * would be sent, its decision, and the framework's own response (Koa: the context again; Fastify: the reply). Each adapter
 * sets the types of both.
 *
 * What it returns is sent instead, with any status; when it returns nothing and has not answered by itself, the standard answer is.
 * `false` says that it answers by itself, now or later: nothing is sent. Rate limit headers and `Retry-After` have been
 * set by then.
 */
export type OnRejected<Request, Response = unknown> = (
  request: Request,
  rejection: Rejection,
  decision: Decision,
  response: Response,
) => // Not `false`: TypeScript takes an async function that returns it for one that yields a boolean.
  | RejectionAnswer
  | NodeResponse
  | boolean
  | undefined
  | PromiseLike<RejectionAnswer | NodeResponse | boolean | undefined>
  | MaybePromise<void>

/** What `(req, rejection, decision, res) => res.status(402).json({})` returns. The response has been sent, so it is not an answer. */
export interface NodeResponse {
  /** Of `http.ServerResponse`, which Express extends. */
  readonly headersSent: boolean
}
