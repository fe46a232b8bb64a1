import type { Decision } from "../../decision/decision.ts"
import type { Rejection, RejectionAnswer } from "../../ground/answer.ts"
import type { MaybePromise } from "../../ground/maybe-promise.ts"

/**
 * A callback that takes over the response to a refused request. Its arguments are the framework's own request, the
 * response that would be sent, the decision, and the framework's own response. On Koa, request and response are both
 * the context. On Fastify, the response is the reply. Each adapter defines the types of the framework's request and
 * response.
 *
 * The return value is sent instead of the standard response, with any status. If the callback returns nothing and has
 * not responded itself, the standard response is sent. `false` means that the callback responds itself, now or later,
 * so the adapter sends nothing. Rate limit headers and `Retry-After` are set before the callback is called.
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
 * The return value of a handler such as `(req, rejection, decision, res) => res.status(402).json({})`. The handler
 * has already sent the response, so the adapter does not send this value.
 */
export interface NodeResponse {
  /** This member identifies an `http.ServerResponse`, which Express extends. */
  readonly headersSent: boolean
}
