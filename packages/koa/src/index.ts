/**
 * Middleware for Koa 3 and 2. What was decided is in the state: `ctx.state.rateLimit`, a {@link Decision} of `@sluice/core`.
 * @module @sluice/koa
 */

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
import type { Context, Middleware, Next } from "koa"
import { keepOnError } from "./error-headers.ts"
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
    // Stryker disable next-line ConditionalExpression: what takes no refunds gives none back
    if (guard.settles) ctx.res.once("finish", () => settle(ctx))
    const outcome = guard.check(new KoaFacts(ctx), ctx, ctx.res)
    // A value stays a value: on the memory store no request waits for a promise.
    return outcome instanceof Promise
      ? outcome.then((late) => proceed(late, ctx, next))
      : proceed(outcome, ctx, next)
  }

  function settle(ctx: Context): void {
    // Over HTTP/2 a response finishes, too, whose client has cancelled the request: the units stay taken.
    if (ctx.res.writableEnded) guard.settle(ctx, ctx.res.statusCode)
  }

  function proceed(outcome: Outcome | undefined, ctx: Context, next: Next): Promise<unknown> {
    // The client has gone while it was held.
    if (outcome === undefined) return Promise.resolve()
    ctx.state.rateLimit = outcome.decision
    if (!isTaken(ctx)) {
      for (const name of outcome.removed) ctx.remove(name)
      writeHeaders(ctx, outcome.headers)
      keepOnError(ctx, outcome.headers)
    }
    if (outcome.rejection === undefined) return next()
    if (guard.endBegun(ctx.res) || isTaken(ctx)) return Promise.resolve()
    // Stryker disable next-line ConditionalExpression: the guard's own answer is the same, a promise later
    if (guard.asksApp) return refuse(outcome, ctx)
    send(outcome.rejection, ctx)
    return Promise.resolve()
  }

  async function refuse(outcome: Outcome, ctx: Context): Promise<void> {
    const { status: statusBefore, body: bodyBefore } = ctx
    const rejection = await guard.answer(outcome, ctx, ctx)
    // The app's `onRejected` may have answered by itself, or be about to.
    if (rejection === undefined || isTaken(ctx)) return
    if (ctx.status === statusBefore && ctx.body === bodyBefore) send(rejection, ctx)
  }

  return Object.assign(middleware, { limiter: guard.limiter })
}

const MOUNTED_ELSEWHERE = {
  path: "",
  message: "the middleware of @sluice/koa was called by another framework, without a context of Koa",
  accepted: "an app of Koa; rateLimit of @sluice/express in Express, and of @sluice/fastify in Fastify",
}

/** Whether the response has been sent, or somebody else has taken it over. */
function isTaken(ctx: Context): boolean {
  return ctx.headerSent || ctx.respond === false
}

function send({ status, headers, body }: RejectionAnswer, ctx: Context): void {
  ctx.status = status
  // Before the body: Koa looks for a type of its own where there is none.
  for (const [name, value] of headers) {
    // Beside the cookies that the app has set.
    if (name === "Set-Cookie") ctx.res.appendHeader(name, value)
    else ctx.res.setHeader(name, value)
  }
  ctx.body = body
}

/** As `ctx.set` does, which looks for lists and for a response that has been sent. */
function writeHeaders({ res }: Context, headers: readonly HeaderLine[]): void {
  for (const [name, value] of headers) res.setHeader(name, value)
}
