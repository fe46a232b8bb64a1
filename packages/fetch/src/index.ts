/**
 * Rate limiting for servers whose handlers take a `Request` and return a `Response`: Hono, Next.js, SvelteKit, h3,
 * Bun and Deno. `limit.limiter.decisionOn(request)` returns the decision, a {@link Decision} of `@sluice/core`.
 * @module @sluice/fetch
 */

import { InvalidOptionError, type Limiter, type Problem } from "@sluice/core"
import { createGuard } from "@sluice/core/adapters"
import type { MaybePromise } from "@sluice/core/kit"
import { ADDRESS, FACTS, withoutErrors } from "./app-functions.ts"
import { type RequestWith, setContext } from "./context.ts"
import { Incoming } from "./incoming.ts"
import { type RateLimitOptions, requireAddress } from "./options.ts"
import { keepAnswers, type OwnAnswers, toResponse } from "./own-answer.ts"
import { addHeaders, headersAfter } from "./response-headers.ts"
import { whenEnded } from "./when-ended.ts"

export type { FrameworkFacts } from "./app-functions.ts"
export {
  type ClientAddress,
  fromBun,
  fromDeno,
  fromH3,
  fromHono,
  fromProxies,
  fromSvelteKit,
} from "./client-address.ts"
export { contextOf, type RequestWith } from "./context.ts"
export type { FetchLimiterOptions, GuardedOptions, OnFetchRejected, RateLimitOptions } from "./options.ts"

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
   * arguments that the server passes. If `handler` throws, `refundWhen` receives the `status` of the error, or 500. The permits of rules with `concurrent` are
   * released when the response has ended, the client has hung up, or `handler` has thrown or has upgraded the connection
   * to a WebSocket.
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
  const { clientAddress, facts, ...others } = options
  const seen = new WeakMap<object, Incoming<Context>>()
  const ownAnswers: OwnAnswers = new WeakMap()
  const guard = createGuard(keepAnswers(others, ownAnswers), (request) => seen.get(request))
  const read = {
    clientAddress: withoutErrors(clientAddress, ADDRESS, guard.warn.bind(guard)),
    facts: withoutErrors(facts ?? (() => FACTS.otherwise), FACTS, guard.warn.bind(guard)),
  }

  const settle = (request: Request, context: Context, status: number): void => {
    // A client that has hung up does not receive the response, so its units stay taken.
    if (!guard.needsStatus || request.signal.aborted) return
    setContext(request, context)
    guard.reportStatus(request, status)
  }

  const limit = async (request: Request, context: Context): Promise<Limited> => {
    if (typeof request?.headers?.get !== "function") throw new InvalidOptionError([NOT_A_REQUEST])
    const incoming = new Incoming(request, context, read)
    seen.set(request, incoming)
    setContext(request, context)
    const outcome = await guard.check(incoming, request, incoming)
    const release = (): void => guard.release(request)
    if (guard.holdsPermits(request)) incoming.onClose(release)
    // The client has hung up, so nobody reads this response. nginx logs the same status.
    if (outcome === undefined) return { response: new Response(null, { status: 499 }) }
    const headers = headersAfter(outcome, request)
    const withHeaders = (response: Response): Response => {
      settle(request, context, response.status)
      // Only wrap the body if necessary, because servers send some bodies faster than a stream.
      const watched = guard.holdsPermits(request) ? whenEnded(request, response, release) : response
      return addHeaders(watched, headers)
    }
    const { rejection } = outcome
    if (rejection === undefined) return { withHeaders }
    const answer = (await guard.answer(outcome, request, context)) ?? rejection
    return { response: withHeaders(ownAnswers.get(request) ?? toResponse(answer)) }
  }

  const wrap: RateLimit<Context>["wrap"] =
    (handler) =>
    async (request, context, ...rest) => {
      const limited = await limit(request, context)
      if (limited.response !== undefined) return limited.response
      try {
        const response = await handler(request, context, ...rest)
        if (response !== undefined) return limited.withHeaders(response)
        // In Bun, a handler returns undefined after it has upgraded the connection to a WebSocket.
        guard.release(request)
        return response
      } catch (error) {
        settle(request, context, statusOf(error))
        guard.release(request)
        throw error
      }
    }

  return Object.assign(limit as RateLimit<Context>, { wrap, limiter: guard.limiter })
}

/** Returns the status that a framework sends when a handler throws this error. */
function statusOf(error: unknown): number {
  const { status } = (error ?? {}) as { readonly status?: unknown }
  return typeof status === "number" ? status : 500
}

const NOT_A_REQUEST: Problem = {
  path: "request",
  message: "is not a Request of the fetch API",
  accepted: "limit(request, context): c.req.raw in Hono, event.request in SvelteKit, event.req in h3",
}
