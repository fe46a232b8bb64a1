import {
  createGuard,
  type Decision,
  type GuardOptions,
  type HeaderLine,
  type Limiter,
  type Outcome,
  type Rejection,
  type RequestFacts,
} from "@sluice/core"
import type { NextFunction, Request, RequestHandler, Response } from "express"

declare global {
  namespace Express {
    interface Request {
      /** What the limiter has decided on this request; of several mounts, the decision that binds. */
      rateLimit?: Decision
    }
  }
}

/** The middleware, and the limiter behind it: to peek, to reset, to listen and to close. */
export type RateLimit = RequestHandler & { readonly limiter: Limiter<Request> }

/**
 * Middleware for Express 5 and 4: `app.use(rateLimit({ limit: 100, window: "1 minute" }))`, or on a router or route.
 * Fields that the app itself sets, such as a body, are read when the request gets here: mount it after their parser.
 * It calls `next` without an error or not at all.
 * @throws InvalidOptionError
 */
export function rateLimit(options: GuardOptions<Request>): RateLimit {
  const guard = createGuard(options, factsOf)

  const handler: RequestHandler = (req, res, next) => {
    if (guard.settles) res.once("finish", () => guard.settle(req, res.statusCode))
    const outcome = guard.check(new ExpressFacts(req), req)
    // A value stays a value: on the memory store no request waits for a promise.
    if (outcome instanceof Promise) void outcome.then((late) => proceed(late, req, res, next))
    else proceed(outcome, req, res, next)
  }

  function proceed(outcome: Outcome, req: Request, res: Response, next: NextFunction): void {
    req.rateLimit = outcome.decision
    if (!res.headersSent) writeHeaders(res, outcome.headers)
    if (outcome.rejection === undefined) next()
    else if (!res.headersSent) refuse(outcome, req, res)
  }

  function refuse(outcome: Outcome, req: Request, res: Response): void {
    const rejection = guard.answer(outcome, req, res)
    if (rejection instanceof Promise) void rejection.then((late) => send(late, res))
    else send(rejection, res)
  }

  return Object.assign(handler, { limiter: guard.limiter })
}

function send({ status, headers, body }: Rejection, res: Response): void {
  // The app's `onRejected` may have answered by itself.
  if (res.headersSent || res.writableEnded) return
  res.statusCode = status
  writeHeaders(res, headers)
  // Node tells no length of a body that it leaves out, as it does for HEAD.
  res.setHeader("Content-Length", Buffer.byteLength(body))
  // Not `send`, which would add an ETag and a charset.
  res.end(body)
}

function writeHeaders(res: Response, headers: readonly HeaderLine[]): void {
  for (const [name, value] of headers) res.setHeader(name, value)
}

function factsOf(request: object): RequestFacts | undefined {
  return "baseUrl" in request && "originalUrl" in request ? new ExpressFacts(request as Request) : undefined
}

/** Facts that are read when a rule asks for them: Express 5 parses the query each time. */
class ExpressFacts implements RequestFacts {
  readonly #req: Request
  constructor(req: Request) {
    this.#req = req
  }
  get method(): string {
    return this.#req.method
  }
  get url(): string {
    return this.#req.originalUrl
  }
  get route(): string | undefined {
    return routeOf(this.#req)
  }
  get headers(): Request["headers"] {
    return this.#req.headers
  }
  get query(): unknown {
    return this.#req.query
  }
  get params(): unknown {
    return this.#req.params
  }
  get body(): unknown {
    return this.#req.body
  }
  get cookies(): unknown {
    return this.#req.cookies
  }
  get remoteAddress(): string | undefined {
    return this.#req.socket?.remoteAddress
  }
}

const mountOfRoute = new WeakMap<object, string>()

/**
 * The pattern of the route that the limiter is mounted on. Express tells no pattern for what is before it, only the
 * path that was asked: for a router at "/:tenant" each tenant's. A route seen under a second mount is not known.
 */
function routeOf({ route, baseUrl }: Request): string | undefined {
  if (typeof route?.path !== "string") return undefined
  // "/API" and "/api" are one mount.
  const mount = baseUrl.toLowerCase()
  const first = mountOfRoute.get(route) ?? mount
  mountOfRoute.set(route, first === mount ? mount : SEVERAL)
  return first === mount ? `${mount}${route.path}` : undefined
}

/** No mount ends in a slash. */
const SEVERAL = "/"
