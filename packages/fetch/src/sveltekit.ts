/**
 * A `handle` hook for SvelteKit. The decision is available as `event.locals.rateLimit`, a {@link Decision} of
 * `@sluice/core`.
 * @module @sluice/fetch/sveltekit
 */

import type { Decision, Limiter } from "@sluice/core"
import type { MaybePromise } from "@sluice/core/kit"
import { Limiting } from "./limiting.ts"
import type { FrameworkOptions } from "./options.ts"

declare global {
  namespace App {
    interface Locals {
      /** The limiter's decision on this request. With several hooks, this is the binding decision. */
      rateLimit?: Decision | undefined
    }
  }
}

/** The members of SvelteKit's event that are read. */
export interface SvelteKitEvent {
  /** The request. */
  readonly request: Request
  /** The URL of the page, also for a request that loads the page's data. */
  readonly url: URL
  /** The parameters of the route. */
  readonly params: object
  /** The route. */
  readonly route: {
    /** The pattern, such as "/blog/[slug]", or null if no route matches. */
    readonly id: string | null
  }
  /** The app's own data about the request. */
  readonly locals: object
  /** Whether the request is a `fetch` of a `load` function, without a connection. */
  readonly isSubRequest: boolean
  /** Whether the request calls a remote function. */
  readonly isRemoteRequest?: boolean
  /** Returns the address that SvelteKit's adapter provides. */
  getClientAddress(): string
}

/** Limiter options, or a limiter to share. Functions in the options receive SvelteKit's event. */
export type RateLimitOptions<Event> = FrameworkOptions<Event>

/** The hook, and the limiter behind it. */
export interface RateLimit<Event> {
  /** Responds to a refused request, and passes every other request on. */
  (input: {
    /** SvelteKit's event. */
    event: Event
    /** Runs the next hook, or renders the response. */
    resolve(event: Event): MaybePromise<Response>
  }): Promise<Response>
  /** The limiter, for peeks, resets, event listeners and closing. */
  readonly limiter: Limiter<Event>
}

/**
 * Creates a `handle` hook for SvelteKit. Export it from `src/hooks.server.ts`, or pass it to `sequence`. The address of
 * the client is that of `event.getClientAddress()`. A `fetch` of a `load` function and the pages that are prerendered in
 * a build are not counted.
 * @example
 * ```ts
 * import { rateLimit } from "@sluice/fetch/sveltekit"
 *
 * const handle = rateLimit({ limit: 100, window: "1 minute" })
 * export { handle }
 * ```
 * @throws {@link InvalidOptionError}
 */
export function rateLimit<Event extends SvelteKitEvent = SvelteKitEvent>(
  options: RateLimitOptions<Event>,
): RateLimit<Event> {
  const limiting = new Limiting<Event>(options, {
    clientAddress: (event) => event.getClientAddress(),
    // A client that calls a remote function can choose any page in a header.
    facts: ({ isRemoteRequest, url, params, route }) =>
      isRemoteRequest ? {} : { routedUrl: url.href, params, route: route.id ?? undefined },
    requestOf: ({ request }) => request,
    store(event, decision) {
      const locals: App.Locals = event.locals
      locals.rateLimit = decision
    },
  })
  const handle = async ({ event, resolve }: Parameters<RateLimit<Event>>[0]): Promise<Response> => {
    if (event.isSubRequest || isPrerendering(event)) return resolve(event)
    return limiting.pass(event, () => resolve(event))
  }
  return Object.assign(handle, { limiter: limiting.limiter })
}

/** True in a build, when pages are rendered for no client. The error of SvelteKit is the same in all versions. */
function isPrerendering(event: SvelteKitEvent): boolean {
  try {
    event.getClientAddress()
    return false
  } catch (error) {
    return `${error}`.includes("prerender")
  }
}
