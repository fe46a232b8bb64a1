import type { Decision } from "../../decision/decision.ts"
import type { Rejection, RejectionAnswer } from "../../ground/answer.ts"
import type { MaybePromise } from "../../ground/maybe-promise.ts"

/**
 * A callback that takes over the response to a refused request. Its arguments are the framework's own request, the
 * response that would be sent, the decision, and the framework's own response. On Koa, request and response are both
 * the context. On Fastify, the response is the reply. Each adapter sets the types of both.
 *
 * The return value is sent instead, with any status. If the callback returns nothing and has not answered itself, the
 * standard response is sent. `false` means that the callback responds itself, now or later, so nothing is sent. Rate
 * limit headers and `Retry-After` are already set by then.
 */
export type OnRejected<Request, Response = unknown> = (
  request: Request,
  rejection: Rejection,
  decision: Decision,
  response: Response,
) => // The type is not `false`, because TypeScript infers `boolean` for an async function that returns false.
  | RejectionAnswer
  | NodeResponse
  | boolean
  | undefined
  | PromiseLike<RejectionAnswer | NodeResponse | boolean | undefined>
  | MaybePromise<void>

/**
 * The return value of a handler such as `(req, rejection, decision, res) => res.status(402).json({})`. The response has
 * been sent, so this value is not a response.
 */
export interface NodeResponse {
  /** A member of `http.ServerResponse`, which Express extends. */
  readonly headersSent: boolean
}
