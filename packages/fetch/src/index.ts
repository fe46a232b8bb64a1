/**
 * Rate limiting for servers whose handlers take a `Request` and return a `Response`: Next.js, h3, Bun and Deno. Hono,
 * SvelteKit and Elysia have their own entry points. `limit.limiter.decisionOn(request)` returns the decision, a
 * {@link Decision} of `@sluice/core`.
 * @module @sluice/fetch
 */

import type { Limiter } from "@sluice/core"
import type { MaybePromise } from "@sluice/core/kit"
import { FACTS } from "./app-functions.ts"
import { contexts, type RequestWith, setContext } from "./context.ts"
import { Limiting } from "./limiting.ts"
import { type RateLimitOptions, requireAddress } from "./options.ts"

export type { FrameworkFacts } from "./app-functions.ts"
export { type ClientAddress, fromBun, fromDeno, fromH3, fromProxies } from "./client-address.ts"
export { contextOf, type RequestWith } from "./context.ts"
export type {
  FetchAnswer,
  FetchLimiterOptions,
  FrameworkOptions,
  GuardedOptions,
  OnFetchRejected,
  RateLimitOptions,
} from "./options.ts"

/** The result for one request: a response to send, or a function for the app's own response. */
export type Limited =
  | {
      /**
       * The response to a refused request, with all headers. Return this response to the server, and do not run the
       * handler.
       */
      readonly response: Response
      /** Absent, so that code which ignores the refusal fails. */
      readonly withHeaders?: undefined
    }
  | {
      /** Absent, because the request is admitted. */
      readonly response?: undefined
      /**
       * Adds the rate limit headers to the app's response, and passes its status to `refundWhen`. Return the result
       * to the server, because it is a copy if the response has immutable headers. A header that the response already
       * has is kept.
       *
       * The permits of rules with `concurrent` are released when the body has ended, has failed or is canceled. They are
       * released immediately if the response has no body. If the app fails before it has a response, call
       * `limiter.release`.
       */
      withHeaders(response: Response): Response
    }

/** The function that limits requests, and the limiter behind it. */
export interface RateLimit<Context> {
  /**
   * Decides whether to admit a request. `context` is passed to `clientAddress`. If the request's `signal` is aborted
   * while the request is held, the client has hung up. Rejects with {@link InvalidOptionError} if `request` is not a
   * `Request`, and with what `onRejected` throws.
   */
  (
    request: Request,
    ...context: unknown extends Context ? [context?: Context] : [context: Context]
  ): Promise<Limited>
  /**
   * Returns a handler that responds to refused requests, and passes all other requests to `handler`, with the
   * arguments that the server passes. If `handler` throws, `refundWhen` receives the `status` of the error, or 500. The
   * permits of rules with `concurrent` are released when the response has ended, the client has hung up, or `handler` has
   * thrown or has upgraded the connection to a WebSocket.
   */
  wrap<
    Asked extends Request,
    Given extends Context,
    Result extends Response | undefined,
    Rest extends readonly unknown[],
  >(
    handler: (request: Asked, context: Given, ...rest: Rest) => MaybePromise<Result>,
  ): (request: Asked, context: Given, ...rest: Rest) => Promise<Response | Result>
  /** The limiter, for peeks, resets, event listeners and closing. */
  readonly limiter: Limiter<RequestWith<Context>>
}

/**
 * Creates a function that limits the requests of a server. Create this function once, when the app starts.
 * @example
 * ```ts
 * import { fromProxies, rateLimit } from "@sluice/fetch"
 *
 * const limit = rateLimit({ limit: 100, window: "1 minute", clientAddress: fromProxies, trustedProxies: 1 })
 *
 * const get = limit.wrap(() => Response.json({ hello: "world" }))
 *
 * async function post(request: Request) {
 *   const limited = await limit(request)
 *   if (limited.response) return limited.response
 *   return limited.withHeaders(new Response("created", { status: 201 }))
 * }
 * ```
 * @throws {@link InvalidOptionError}
 */
export function rateLimit<Context = unknown>(options: RateLimitOptions<Context>): RateLimit<Context> {
  requireAddress(options)
  const limiting = new Limiting<RequestWith<Context>>(options, {
    clientAddress: () => undefined,
    facts: () => FACTS.otherwise,
    requestOf: (request) => (contexts.has(request) ? request : undefined),
  })

  const limit = async (request: Request, context: Context): Promise<Limited> => {
    setContext(request, context)
    const decided = await limiting.decide(request)
    const { refusal } = decided
    if (refusal !== undefined) return { response: refusal }
    return { withHeaders: (response) => limiting.finish(decided, response) }
  }
  const wrap: RateLimit<Context>["wrap"] =
    (handler) =>
    (request, context, ...rest) => {
      setContext(request, context)
      return limiting.pass(request, () => handler(request, context, ...rest))
    }

  return Object.assign(limit as RateLimit<Context>, { wrap, limiter: limiting.limiter })
}
