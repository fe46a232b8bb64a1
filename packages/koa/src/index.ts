import {
  createGuard,
  type Decision,
  type GuardOptions,
  type Limiter,
  type Outcome,
  type RequestFacts,
} from "@sluice/core"
import type { Context, Middleware, Next } from "koa"

declare module "koa" {
  interface DefaultState {
    /** What the limiter has decided on this request; of several mounts, the decision that binds. */
    rateLimit?: Decision
  }
}

/** The middleware, and the limiter behind it: to peek, to reset, to listen and to close. */
export type RateLimit = Middleware & { readonly limiter: Limiter<Context> }

/**
 * Middleware for Koa 3 and 2: `app.use(rateLimit({ limit: 100, window: "1 minute" }))`, or on a router or route.
 * Fields that the app itself sets, such as a body, are read when the request gets here: mount it after their parser.
 * A refusal is an ordinary response, nothing is thrown.
 * @throws InvalidOptionError
 */
export function rateLimit(options: GuardOptions<Context>): RateLimit {
  const guard = createGuard(options, factsOf)

  const middleware = (ctx: Context, next: Next): Promise<unknown> => {
    if (guard.settles) ctx.res.once("finish", () => guard.settle(ctx, ctx.res.statusCode))
    const outcome = guard.check(new KoaFacts(ctx), ctx)
    // A value stays a value: on the memory store no request waits for a promise.
    return outcome instanceof Promise
      ? outcome.then((late) => proceed(late, ctx, next))
      : proceed(outcome, ctx, next)
  }

  function proceed(outcome: Outcome, ctx: Context, next: Next): Promise<unknown> {
    ctx.state.rateLimit = outcome.decision
    if (!isTaken(ctx)) for (const [name, value] of outcome.headers) ctx.set(name, value)
    if (outcome.rejection !== undefined) return isTaken(ctx) ? Promise.resolve() : refuse(outcome, ctx)
    return next().catch((error: unknown) => {
      throw withHeaders(error, outcome, ctx)
    })
  }

  async function refuse(outcome: Outcome, ctx: Context): Promise<void> {
    const { status: statusBefore, body: bodyBefore } = ctx
    const { status, headers, body } = await guard.answer(outcome, ctx, ctx)
    // The app's `onRejected` may have answered by itself.
    if (isTaken(ctx) || ctx.status !== statusBefore || ctx.body !== bodyBefore) return
    ctx.status = status
    ctx.body = body
    for (const [name, value] of headers) ctx.set(name, value)
  }

  return Object.assign(middleware, { limiter: guard.limiter })
}

/** Whether the response has been sent, or somebody else has taken it over. */
function isTaken(ctx: Context): boolean {
  return ctx.headerSent || ctx.res.writableEnded || ctx.respond === false
}

/** Koa answers an error with the error's own headers and no others, so what has been told goes with it. */
function withHeaders(error: unknown, { headers }: Outcome, ctx: Context): unknown {
  if (error instanceof Error && Object.isExtensible(error)) {
    // As they are on the response by now: a mount further in has joined its own.
    const told = headers.map(([name]) => [name, ctx.response.get(name)])
    const { headers: own } = error as { readonly headers?: object }
    Object.assign(error, { headers: { ...own, ...Object.fromEntries(told) } })
  }
  return error
}

function factsOf(request: object): RequestFacts | undefined {
  return "req" in request && "originalUrl" in request ? new KoaFacts(request as Context) : undefined
}

/** Facts that are read when a rule asks for them. */
class KoaFacts implements RequestFacts {
  readonly #ctx: Context
  constructor(ctx: Context) {
    this.#ctx = ctx
  }
  get method(): string {
    return this.#ctx.method
  }
  get url(): string {
    return this.#ctx.originalUrl
  }
  get route(): string | undefined {
    const route: unknown = this.#ctx._matchedRoute
    return typeof route === "string" ? route : undefined
  }
  get headers(): Context["headers"] {
    return this.#ctx.headers
  }
  get query(): unknown {
    return this.#ctx.query
  }
  get params(): unknown {
    return this.#ctx.params
  }
  get body(): unknown {
    return (this.#ctx.request as { body?: unknown }).body
  }
  get remoteAddress(): string | undefined {
    return this.#ctx.req.socket?.remoteAddress
  }
}
