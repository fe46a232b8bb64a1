/**
 * Middleware for Koa 3 and 2. What was decided is in the state: `ctx.state.rateLimit`, a {@link Decision} of `@sluice/core`.
 * @module @sluice/koa
 */

import {
  createGuard,
  type Decision,
  type GuardOptions,
  InvalidOptionError,
  type Limiter,
  respond,
} from "@sluice/core"
import type { Context, Middleware, Next } from "koa"
import { KoaExchange } from "./exchange.ts"
import { factsOf, KoaFacts } from "./facts.ts"

/** What the middleware adds to a context's state, for apps whose state has a type of its own: `new Koa<State & RateLimitState>()`. */
export interface RateLimitState {
  /** What the limiter has decided on this request; of several mounts, the decision that binds. */
  rateLimit?: Decision
}

declare module "koa" {
  interface DefaultState extends RateLimitState {}
}

/** Limiter options, or a limiter to share; functions in them get Koa's context. */
export type RateLimitOptions = GuardOptions<Context, Context>

/** The middleware, and the limiter behind it. */
export type RateLimit = Middleware & {
  /** To peek, to reset, to listen and to close. */
  readonly limiter: Limiter<Context>
}

/**
 * Middleware for Koa 3 and 2, for an app, a router or a route. Fields that the app itself sets, such as a body, are read when
 * the request gets here: mount it after their parser. A refusal is an ordinary response, nothing is thrown.
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
 * @throws {@link InvalidOptionError} here, and in a request of another framework
 */
export function rateLimit(options: RateLimitOptions): RateLimit {
  const guard = createGuard(options, factsOf)

  const middleware = (ctx: Context, next: Next): Promise<unknown> => {
    if (ctx.state === undefined) throw new InvalidOptionError([MOUNTED_ELSEWHERE])
    return Promise.resolve(respond(guard, new KoaFacts(ctx), new KoaExchange(ctx, ctx.res, next, ctx)))
  }

  return Object.assign(middleware, { limiter: guard.limiter })
}

const MOUNTED_ELSEWHERE = {
  path: "",
  message: "the middleware of @sluice/koa was called by another framework, without a context of Koa",
  accepted: "an app of Koa; rateLimit of @sluice/express in Express, and of @sluice/fastify in Fastify",
}
