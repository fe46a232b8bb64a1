/**
 * Middleware for Express 5 and 4. What was decided is on the request: `req.rateLimit`, a {@link Decision} of `@sluice/core`.
 * @module @sluice/express
 */

import type { IncomingMessage, ServerResponse } from "node:http"
import {
  createGuard,
  type Decision,
  type GuardOptions,
  type HeaderLine,
  InvalidOptionError,
  type Limiter,
  type Outcome,
  type RejectionAnswer,
} from "@sluice/core"
import type { NextFunction, Request, RequestHandler, Response } from "express"
import { ExpressFacts, factsOf } from "./facts.ts"

declare global {
  namespace Express {
    interface Request {
      /** What the limiter has decided on this request; of several mounts, the decision that binds. */
      rateLimit?: Decision
    }
  }
}

/** Limiter options, or a limiter to share; functions in them get Express' own request, and `onRejected` its own response. */
export type RateLimitOptions = GuardOptions<Request, Response>

/**
 * The middleware, and the limiter behind it. To TypeScript it says nothing of a route's parameters and body: beside it
 * they keep the types that they have.
 */
export type RateLimit = ((
  req: IncomingMessage & Pick<Request, "baseUrl" | "originalUrl">,
  res: ServerResponse,
  next: NextFunction,
) => void) & {
  /** To peek, to reset, to listen and to close. */
  readonly limiter: Limiter<Request>
}

/**
 * Middleware for Express 5 and 4, for an app, a router or a route. Fields that the app itself sets, such as a body, are read
 * when the request gets here: mount it after their parser. It calls `next` without an error or not at all.
 * @example
 * ```ts
 * import { rateLimit } from "@sluice/express"
 * import express from "express"
 *
 * const app = express()
 * app.use(rateLimit({ limit: 100, window: "1 minute" }))
 * app.get("/search", rateLimit({ name: "search", limit: 3, window: "1 second" }), (req, res) => {
 *   res.json({ remaining: req.rateLimit?.remaining })
 * })
 * ```
 * @throws {@link InvalidOptionError} here, and in a request of another framework
 */
export function rateLimit(options: RateLimitOptions): RateLimit {
  const guard = createGuard(options, factsOf)

  const handler: RequestHandler = (req, res, next) => {
    if (typeof res?.setHeader !== "function") throw new InvalidOptionError([MOUNTED_ELSEWHERE])
    // Stryker disable next-line ConditionalExpression: what takes no refunds gives none back
    if (guard.settles) res.once("finish", () => guard.settle(req, res.statusCode))
    const outcome = guard.check(new ExpressFacts(req, handler), req, res)
    // A value stays a value: on the memory store no request waits for a promise.
    if (outcome instanceof Promise) whenMade(outcome, (late) => proceed(late, req, res, next), next)
    else proceed(outcome, req, res, next)
  }

  function proceed(outcome: Outcome | undefined, req: Request, res: Response, next: NextFunction): void {
    // The client has gone while it was held.
    if (outcome === undefined) return
    req.rateLimit = outcome.decision
    if (!res.headersSent) {
      for (const name of outcome.removed) res.removeHeader(name)
      writeHeaders(res, outcome.headers)
    }
    if (outcome.rejection === undefined) next()
    else if (!guard.endBegun(res)) refuse(outcome, req, res, next)
  }

  function refuse(outcome: Outcome, req: Request, res: Response, next: NextFunction): void {
    const rejection = guard.answer(outcome, req, res)
    if (rejection instanceof Promise) whenMade(rejection, (late) => send(late, res), next)
    else send(rejection, res)
  }

  return Object.assign(handler as RateLimit, { limiter: guard.limiter })
}

const MOUNTED_ELSEWHERE = {
  path: "",
  message: "the middleware of @sluice/express was called by another framework, without a response of Express",
  accepted: "an app of Express; rateLimit of @sluice/koa in Koa, and of @sluice/fastify in Fastify",
}

/** Goes on with a value that comes later. What throws then goes to `next`, as Express does with what a handler throws at once. */
function whenMade<Value>(promise: Promise<Value>, goOn: (value: Value) => void, next: NextFunction): void {
  promise.then(goOn).catch(next)
}

function send(rejection: RejectionAnswer | undefined, res: Response): void {
  // The app's `onRejected` may have answered by itself, or be about to.
  if (rejection === undefined || res.headersSent || res.writableEnded) return
  const { status, headers, body } = rejection
  res.statusCode = status
  for (const [name, value] of headers) {
    // Beside the cookies that the app has set.
    if (name === "Set-Cookie") res.appendHeader(name, value)
    else res.setHeader(name, value)
  }
  // Node tells no length of a body that it leaves out, as it does for HEAD. Of these two nobody may (RFC 9110, section 8.6).
  if (status !== 204 && status !== 304) res.setHeader("Content-Length", Buffer.byteLength(body))
  // Not `send`, which would add an ETag and a charset.
  res.end(body)
}

function writeHeaders(res: Response, headers: readonly HeaderLine[]): void {
  for (const [name, value] of headers) res.setHeader(name, value)
}
