/**
 * Middleware for Koa 3 and 2. The decision is available as `ctx.state.rateLimit`, a {@link Decision} of
 * `@sluice/core`.
 * @module @sluice/koa
 */

import { type Decision, InvalidOptionError, type Limiter } from "@sluice/core"
import {
  createThrowingGuard,
  type GuardOptions,
  MountOrder,
  type RefusalOptions,
  respond,
} from "@sluice/core/adapters"
import type { Context, Middleware, Next } from "koa"
import { KoaExchange } from "./exchange.ts"
import { factsOf, KoaFacts } from "./facts.ts"
import { layersOf } from "./layers.ts"

export { RefusalError } from "@sluice/core/adapters"

/**
 * The state that the middleware adds to a context. For apps with their own state type:
 * `new Koa<State & RateLimitState>()`.
 */
export interface RateLimitState {
  /** The limiter's decision on this request. With several mounts, this is the binding decision. */
  rateLimit?: Decision
}

declare module "koa" {
  interface DefaultState extends RateLimitState {}
}

/** Limiter options, or a limiter to share. Functions in the options receive Koa's context. */
export type RateLimitOptions = GuardOptions<Context, Context> & RefusalOptions

/** The middleware, and the limiter behind it. */
export type RateLimit = Middleware & {
  /** The limiter, for peeks, resets, event listeners and closing. */
  readonly limiter: Limiter<Context>
}

/**
 * Creates middleware for Koa 3 and 2, for an app, a router or a route. Mount the middleware after the parsers of the
 * fields that its rules read, such as the body. Within a router, call `router.use` before adding the routes. After
 * the routes, the middleware would never run, so it could not even warn. A refusal is an ordinary response. The
 * middleware throws only if `throwOnRefusal` is true, or if `onRejected` fails.
 * @example
 * ```ts
 * import { rateLimit } from "@sluice/koa"
 * import Koa from "koa"
 *
 * const app = new Koa()
 * app.use(rateLimit({ limit: 100, window: "1 minute" }))
 * app.use((ctx) => {
 *   ctx.body = { remaining: ctx.state.rateLimit?.remaining }
 * })
 * ```
 * @throws {@link InvalidOptionError} when called with invalid options, and when another framework calls the middleware
 */
export function rateLimit(options: RateLimitOptions): RateLimit {
  const guard = createThrowingGuard(options, factsOf)
  const order = new MountOrder(guard)

  const middleware = (ctx: Context, next: Next): Promise<unknown> => {
    if (ctx.state === undefined) throw new InvalidOptionError([MOUNTED_ELSEWHERE])
    if (order.isWatching) order.watch(ctx, ctx.res, middleware, () => layersOf(ctx.app))
    return Promise.resolve(
      respond(guard, new KoaFacts(ctx, ctx.req), new KoaExchange(ctx, ctx.res, next, ctx)),
    )
  }
  return Object.assign(middleware, { limiter: guard.limiter })
}

const MOUNTED_ELSEWHERE = {
  path: "",
  message: "the middleware of @sluice/koa was called without a Koa context, probably by another framework",
  accepted: "a Koa app; use @sluice/express for Express and @sluice/fastify for Fastify",
}
