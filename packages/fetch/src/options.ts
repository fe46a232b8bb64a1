import type { Decision, Limiter, Rejection, RejectionAnswer } from "@sluice/core"
import type { LimiterSettings, LimitWithWindow } from "@sluice/core/adapters"
import type { MaybePromise } from "@sluice/core/kit"
import { type FrameworkFacts, faultOf } from "./app-functions.ts"
import { type ClientAddress, fromProxies } from "./client-address.ts"
import type { RequestWith } from "./context.ts"

/**
 * A callback that returns the response to a refused request: a `Response`, or status, headers and body. If it returns
 * undefined, the standard response is sent. Rate limit headers and `Retry-After` are added to every response.
 */
export type OnFetchRejected<Context> = (
  request: RequestWith<Context>,
  rejection: Rejection,
  decision: Decision,
  context: Context,
) => FetchAnswer

/** The result of `onRejected`: a `Response`, or status, headers and body; undefined for the standard response. */
export type FetchAnswer = MaybePromise<Response | RejectionAnswer | undefined>

/** Limiter options, in which `onRejected` may return a `Response`. */
export type FetchLimiterOptions<Request, OnRejected> = Omit<LimiterSettings<Request>, "onRejected"> &
  LimitWithWindow & {
    /** Returns the response to a refused request. Default: a problem (RFC 9457) in JSON, or lines of text. */
    readonly onRejected?: OnRejected | undefined
  }

/** Limiter options, or a limiter to share. */
export type GuardedOptions<Request, OnRejected> =
  | FetchLimiterOptions<Request, OnRejected>
  | {
      /**
       * A limiter that `createLimiter` has created. Its `onRejected` returns status, headers and body, not a
       * `Response`.
       */
      readonly limiter: Limiter<Request>
    }

/**
 * The options of the entry points for frameworks: limiter options, or a limiter to share. Functions in the options
 * receive the framework's own object.
 */
export type FrameworkOptions<Event> = GuardedOptions<
  Event,
  (event: Event, rejection: Rejection, decision: Decision) => FetchAnswer
> & {
  /**
   * Returns the address of the connection's peer, or undefined if the proxies in `trustedProxies` report it. Default: the
   * address that the server provides.
   */
  readonly clientAddress?: ((event: Event) => string | undefined) | undefined
}

/** Limiter options or a limiter to share, and the source of the client's address. */
export type RateLimitOptions<Context> = GuardedOptions<RequestWith<Context>, OnFetchRejected<Context>> & {
  /**
   * Returns the address of the connection's peer. There is a function for each server, such as {@link fromBun}.
   * Required, because a `Request` does not have an address. If no rule counts by address, pass `() => undefined`.
   */
  readonly clientAddress: ClientAddress<Context>
  /**
   * Returns the facts that only the framework knows, for `match.path` and the fields `route`, `param:NAME` and
   * `body:PATH`. Called at most once per request, when a rule needs one of these facts. Default: such fields are
   * missing, and paths are those of `request.url`.
   */
  readonly facts?: ((request: Request, context: Context) => FrameworkFacts) | undefined
}

/** Throws InvalidOptionError if the source of the address is missing, or cannot provide any address. */
export function requireAddress(options: {
  readonly clientAddress?: unknown
  readonly trustedProxies?: unknown
  readonly limiter?: unknown
}): void {
  const { clientAddress, trustedProxies, limiter } = options ?? {}
  if (typeof clientAddress !== "function") {
    const fault =
      clientAddress === undefined ? "is missing" : `a value of type ${typeof clientAddress} is not a function`
    throw faultOf(SOURCE, `${fault}, and a Request does not have an address`)
  }
  // Do not check `trustedProxies` of a shared limiter, because its options are not available here.
  if (clientAddress !== fromProxies || limiter !== undefined) return
  if (typeof trustedProxies !== "number" || trustedProxies === 0) {
    throw faultOf(
      PROXIES,
      "is not a number of proxies, but only proxies can report the address (fromProxies)",
    )
  }
}

const SOURCE = {
  path: "clientAddress",
  accepted:
    "the function for your server: fromBun, fromDeno, fromH3 or fromProxies. Hono, SvelteKit and Elysia have entry points that " +
    "need none, such as @sluice/fetch/hono",
}

const PROXIES = { path: "trustedProxies", accepted: "the number of proxies in front of the app, from 1" }
