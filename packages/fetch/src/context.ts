/** The key of a member that exists only in types, to attach the type of the context to a request. */
declare const CONTEXT: unique symbol

/** A request of the fetch API. {@link contextOf} returns the context that was passed to the limiter with it. */
export interface RequestWith<Context> extends Request {
  /** This member exists only in types, never at run time. */
  readonly [CONTEXT]?: Context
}

/** The contexts that were passed to limiters, by their requests. */
export const contexts: WeakMap<object, unknown> = new WeakMap()

/**
 * Returns the context that was passed to `limit(request, context)` with this request: the framework's own object,
 * such as Hono's context or SvelteKit's event. Use it in functions of the options that only receive the request.
 * Returns undefined for a request that has not been passed to `limit`.
 * @example
 * ```ts
 * import { contextOf, rateLimit } from "@sluice/fetch"
 *
 * interface Event {
 *   readonly locals: { readonly userId?: string }
 * }
 * const limit = rateLimit<Event>({
 *   rules: [{ field: "user_id", limit: 100, window: "1 minute" }],
 *   fields: { user_id: (request) => contextOf(request)?.locals.userId },
 *   clientAddress: () => undefined,
 * })
 * ```
 */
export function contextOf<Context>(request: RequestWith<Context>): Context | undefined {
  return contexts.get(request) as Context | undefined
}

/** Stores the context for {@link contextOf}. Does nothing if the app has passed something else than an object. */
export function setContext(request: object, context: unknown): void {
  if (request === Object(request)) contexts.set(request, context)
}
