import type { FastifyReply, FastifyRequest } from "fastify"
import type { Done } from "./exchange.ts"

/** A hook of Fastify. Only `preParsing` passes a payload before `done`. */
export type Hook = (request: FastifyRequest, reply: FastifyReply, payload: unknown, done?: Done) => void

/** Fastify's internal context of a route or a 404 handler, with the functions that run before the handler. */
interface RouteContext {
  readonly config: unknown
  preHandler: readonly Hook[] | null
  /** One of these members is the context of the 404 handler. */
  readonly [key: symbol]: unknown
}

/**
 * Runs a function right before the handlers of chosen routes, after every other `preHandler`.
 *
 * Fastify's public hooks cannot guarantee this order. `onRoute` hooks are not called for 404 handlers and for routes
 * that are older than the plugin. Functions that are registered later, for the app or by another `onRoute` hook, run
 * after the plugin's function. Fastify builds the final list of a route's functions when the app is ready. Each
 * request refers to the context of its route, which contains this list.
 */
export class BeforeHandler {
  readonly #run: Hook
  readonly #seen = new WeakSet<RouteContext>()
  /**
   * The symbol under which requests refer to the context; undefined until found. Each copy of Fastify has its own
   * symbol.
   */
  #key: symbol | undefined

  constructor(run: Hook) {
    this.#run = run
  }

  /**
   * Adds the function to the route of a request that is in `onRequest`. Also adds it to the 404 handler to which
   * `reply.callNotFound()` passes the request, because Fastify does not run `onRequest` hooks in that case. Returns
   * false if this release of Fastify does not allow adding the function.
   */
  addTo(request: FastifyRequest): boolean {
    const context = this.#contextOf(request)
    if (context === undefined) return false
    if (this.#seen.has(context)) return true
    this.#seen.add(context)
    const referred = Object.getOwnPropertySymbols(context).map((key) => context[key])
    for (const each of [context, ...referred.filter(isRouteContext)]) {
      const before = each.preHandler ?? []
      // Add the function only once, because routes share the list of their 404 handler.
      if (!before.includes(this.#run)) each.preHandler = [...before, this.#run]
    }
    return true
  }

  #contextOf(request: FastifyRequest): RouteContext | undefined {
    this.#key ??= Object.getOwnPropertySymbols(request).find((key) => isContext(request, key))
    return this.#key === undefined ? undefined : (request as Contextual)[this.#key]
  }
}

type Contextual = FastifyRequest & { readonly [key: symbol]: RouteContext | undefined }

/**
 * True if the symbol refers to the context of the request's route. The context is identified by the route's config,
 * which is public.
 */
function isContext(request: FastifyRequest, key: symbol): boolean {
  const value = (request as Contextual)[key]
  return isRouteContext(value) && value.config === request.routeOptions.config
}

function isRouteContext(value: unknown): value is RouteContext {
  return typeof value === "object" && value !== null && "config" in value && "preHandler" in value
}
