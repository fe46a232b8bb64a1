import {
  type Decision,
  InvalidOptionError,
  type Limiter,
  type Problem,
  type Rejection,
  type RejectionAnswer,
} from "@sluice/core"
import type { LimiterSettings, LimitWithWindow } from "@sluice/core/adapters"
import type { MaybePromise } from "@sluice/core/kit"
import type { FrameworkFacts } from "./app-functions.ts"
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
) => MaybePromise<Response | RejectionAnswer | undefined>

/** Limiter options, in which `onRejected` may return a `Response`. */
export type FetchLimiterOptions<Context> = Omit<LimiterSettings<RequestWith<Context>>, "onRejected"> &
  LimitWithWindow & {
    /** Returns the response to a refused request. Default: a problem (RFC 9457) in JSON, or lines of text. */
    readonly onRejected?: OnFetchRejected<Context> | undefined
  }

/** Limiter options, or a limiter to share. */
export type GuardedOptions<Context> =
  | FetchLimiterOptions<Context>
  | {
      /**
       * A limiter that `createLimiter` has created. Its `onRejected` returns status, headers and body, not a
       * `Response`.
       */
      readonly limiter: Limiter<RequestWith<Context>>
    }

/** Limiter options or a limiter to share, and the source of the client's address. */
export type RateLimitOptions<Context> = GuardedOptions<Context> & {
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
  if (typeof clientAddress !== "function") throw new InvalidOptionError([noAddress(clientAddress)])
  // Do not check `trustedProxies` of a shared limiter, because its options are not available here.
  if (clientAddress !== fromProxies || limiter !== undefined) return
  if (typeof trustedProxies !== "number" || trustedProxies === 0) throw new InvalidOptionError([NO_PROXIES])
}

function noAddress(given: unknown): Problem {
  const fault = given === undefined ? "is missing" : `a value of type ${typeof given} is not a function`
  return {
    path: "clientAddress",
    message: `${fault}, and a Request does not have an address`,
    accepted:
      "the function for your server: fromBun, fromDeno, fromHono(getConnInfo), fromH3, fromSvelteKit or fromProxies",
  }
}

const NO_PROXIES: Problem = {
  path: "trustedProxies",
  message: "is not a number of proxies, but only proxies can report the address (fromProxies)",
  accepted: "the number of proxies in front of the app, from 1",
}
