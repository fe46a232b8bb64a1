/**
 * Middleware for Express 5 and 4. The decision is available as `req.rateLimit`, a {@link Decision} of
 * `@sluice/core`.
 * @module @sluice/express
 */

import type { IncomingMessage, ServerResponse } from "node:http"
import { type Decision, InvalidOptionError, type Limiter } from "@sluice/core"
import {
  createThrowingGuard,
  type GuardOptions,
  MountOrder,
  type RefusalOptions,
  respond,
} from "@sluice/core/adapters"
import type { NextFunction, Request, RequestHandler, Response } from "express"
import { ExpressExchange } from "./exchange.ts"
import { ExpressFacts, factsOf } from "./facts.ts"
import { type App, layersOf } from "./layers.ts"

export { RefusalError } from "@sluice/core/adapters"

declare global {
  namespace Express {
    interface Request {
      /** The limiter's decision on this request. With several mounts, this is the binding decision. */
      rateLimit?: Decision
    }
  }
}

/**
 * Limiter options, or a limiter to share. Functions in the options receive Express' own request, and `onRejected`
 * also receives Express' own response.
 */
export type RateLimitOptions = GuardOptions<Request, Response> & RefusalOptions

/**
 * The middleware, and the limiter behind it. Its type does not mention a route's parameters and body, so the types in
 * the route's handlers stay unchanged.
 */
export type RateLimit = ((
  req: IncomingMessage & Pick<Request, "baseUrl" | "originalUrl">,
  res: ServerResponse,
  next: NextFunction,
) => void) & {
  /** The limiter, for peeks, resets, event listeners and closing. */
  readonly limiter: Limiter<Request>
}

/**
 * Creates middleware for Express 5 and 4, for an app, a router or a route. Mount the middleware after the parsers of
 * the fields that its rules read, such as the body. The middleware calls `next` with an error only if
 * `throwOnRefusal` is true, or if `onRejected` fails.
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
 * @throws {@link InvalidOptionError} when called with invalid options, and when another framework calls the middleware
 */
export function rateLimit(options: RateLimitOptions): RateLimit {
  const guard = createThrowingGuard(options, factsOf)
  const order = new MountOrder(guard)

  const handler: RequestHandler = (req, res, next) => {
    if (typeof res?.setHeader !== "function") throw new InvalidOptionError([MOUNTED_ELSEWHERE])
    if (order.isWatching) {
      // Read the app now, because the request may later refer to an enclosing app.
      const app = req.app as unknown as App | undefined
      order.watch(req, res, handler, () => layersOf(app))
    }
    const later = respond(guard, new ExpressFacts(req, handler), new ExpressExchange(req, res, next))
    // Express also passes an error that a handler throws synchronously to `next`.
    if (later instanceof Promise) later.catch(next)
  }
  return Object.assign(handler as RateLimit, { limiter: guard.limiter })
}

const MOUNTED_ELSEWHERE = {
  path: "",
  message:
    "the middleware of @sluice/express was called without an Express response, probably by another framework",
  accepted: "an Express app; use @sluice/koa for Koa and @sluice/fastify for Fastify",
}
