import type { IncomingMessage, ServerResponse } from "node:http"
import { parse } from "node:querystring"
import type { Limiter, RequestFacts } from "@sluice/core"
import { createGuard, type GuardOptions, NodeExchange, respond } from "@sluice/core/adapters"

/** A request of Node's HTTP server, extended by the framework's router and body parsers. */
export interface Request extends IncomingMessage {
  readonly originalUrl?: string
  readonly route?: { readonly path: string }
  readonly params?: unknown
  readonly body?: unknown
}

/** Middleware of a framework that passes Node's request and response from one function to the next. */
export type Middleware = (req: Request, res: ServerResponse, next: (error?: unknown) => void) => void

/** The middleware, with its limiter as a property. */
export type RateLimit = Middleware & { readonly limiter: Limiter<Request> }

/** The limiter's options, with functions that receive the framework's request and response. */
type Options = GuardOptions<Request, ServerResponse>

/** Creates middleware. Handlers call `decisionOn(req)` to read the decision. */
export function rateLimit(options: Options): RateLimit {
  const guard = createGuard(options, (request) => {
    return isRequest(request) ? factsOf(request) : undefined
  })
  const middleware: Middleware = (req, res, next) => {
    const later = respond(guard, factsOf(req), new NodeExchange(req, res, next))
    if (later instanceof Promise) later.catch(next)
  }
  return Object.assign(middleware, { limiter: guard.limiter })
}

function isRequest(request: object): request is Request {
  return "socket" in request && "headers" in request
}

function factsOf(req: Request): RequestFacts {
  const { method, headers, route, params, body, socket, url = "/" } = req
  return {
    method,
    headers,
    params,
    body,
    url: req.originalUrl ?? url,
    routedUrl: url,
    route: route?.path,
    // Parse the query only if a rule reads it.
    get query() {
      return parse(url.split("?", 2)[1] ?? "")
    },
    remoteAddress: socket.remoteAddress,
    keepsAddress: socket,
  }
}
