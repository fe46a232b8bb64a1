/**
 * Middleware for Hono 4. The decision is available as `c.var.rateLimit`, a {@link Decision} of `@sluice/core`.
 * @module @sluice/fetch/hono
 */

import type { Decision, Limiter } from "@sluice/core"
import type { Context, MiddlewareHandler } from "hono"
import { matchedRoutes } from "hono/route"
import { findTargetHandler, isMiddleware } from "hono/utils/handler"
import type { FrameworkFacts } from "./app-functions.ts"
import { Limiting } from "./limiting.ts"
import type { FrameworkOptions } from "./options.ts"
import { withHeadersOf } from "./response-headers.ts"

declare module "hono" {
  interface ContextVariableMap {
    /** The limiter's decision on this request. With several mounts, this is the binding decision. */
    rateLimit: Decision | undefined
  }
}

/** Limiter options, or a limiter to share. Functions in the options receive Hono's context. */
export type RateLimitOptions = FrameworkOptions<Context>

/** The middleware, and the limiter behind it. */
export type RateLimit = MiddlewareHandler & {
  /** The limiter, for peeks, resets, event listeners and closing. */
  readonly limiter: Limiter<Context>
}

/**
 * Creates middleware for Hono 4, for an app, a path or a route. Mount it before the routes, because Hono does not run
 * middleware after the handler that responds. On Node, Bun, Deno, Cloudflare Workers and AWS Lambda, the address of the
 * client is that of the connection. On other platforms, set `clientAddress`, because requests fail without an address.
 * @example
 * ```ts
 * import { rateLimit } from "@sluice/fetch/hono"
 * import { Hono } from "hono"
 *
 * const app = new Hono()
 * app.use(rateLimit({ limit: 100, window: "1 minute" }))
 * app.get("/", (c) => c.json({ remaining: c.var.rateLimit?.remaining }))
 * ```
 * @throws {@link InvalidOptionError}
 */
export function rateLimit(options: RateLimitOptions): RateLimit {
  const limiting = new Limiting<Context>(options, {
    clientAddress: addressOf,
    facts: factsOf,
    requestOf: ({ req }) => req?.raw,
    store: (c, decision) => c.set("rateLimit", decision),
  })
  const middleware: MiddlewareHandler = async (c, next) => {
    let isAdmitted = false
    let response = await limiting.pass(c, async () => {
      isAdmitted = true
      await next()
      return c.res
    })
    // Keep the headers that the app has set before, such as those for CORS.
    if (!isAdmitted) response = withHeadersOf(c.res, response)
    if (response !== c.res) {
      // Otherwise, Hono would copy the response.
      c.res = undefined
      c.res = response
    }
    return undefined
  }
  return Object.assign(middleware, { limiter: limiting.limiter })
}

/** What Hono's servers pass as `c.env`. */
interface Bindings {
  readonly server?: Bindings
  /** Node's own request. */
  readonly incoming?: { readonly socket: { readonly remoteAddress?: string } }
  /** A function of Bun's server. */
  requestIP?(request: Request): { readonly address: string } | null
  /** The peer in Deno. Only a TCP connection has a `hostname`. */
  readonly remoteAddr?: { readonly hostname?: string }
  /** The request of API Gateway, of a function URL or of a load balancer, on AWS Lambda. */
  readonly requestContext?: {
    readonly identity?: { readonly sourceIp?: string }
    readonly http?: { readonly sourceIp?: string }
  }
}

/** Returns the address of the connection, as the server provides it. Throws if no server does. */
function addressOf(c: Context): string | undefined {
  const { navigator } = globalThis as { readonly navigator?: { readonly userAgent?: string } }
  // Cloudflare sets this header itself. On another server, the client could write it.
  if (navigator?.userAgent === "Cloudflare-Workers") return c.req.header("cf-connecting-ip")
  const env = (c.env ?? {}) as Bindings
  const server = env.server ?? env
  const { incoming, remoteAddr, requestContext } = server
  if (incoming !== undefined) return incoming.socket.remoteAddress
  if (remoteAddr !== undefined) return remoteAddr.hostname
  if (typeof server.requestIP === "function") return server.requestIP(c.req.raw)?.address
  const address = requestContext?.identity?.sourceIp ?? requestContext?.http?.sourceIp
  if (address === undefined) throw new Error(NO_ADDRESS)
  return address
}

/** Returns the facts of the route, which Hono has found before it runs the middleware. */
function factsOf(c: Context): FrameworkFacts {
  const { req } = c
  const body: unknown = req.valid("json" as never) ?? req.valid("form" as never)
  const routes = matchedRoutes(c)
  const index = routes.findIndex(({ handler }) => !isMiddleware(findTargetHandler(handler)))
  if (index === -1) return { body }
  const { routeIndex } = req
  // Hono reads the parameters of the route with this index.
  req.routeIndex = index
  const params = req.param()
  req.routeIndex = routeIndex
  return { route: routes[index]?.path, params, body }
}

const NO_ADDRESS =
  "c.env has no connection of Node, Bun, Deno, Cloudflare Workers or AWS Lambda. Does the server pass its second argument to app.fetch?"
