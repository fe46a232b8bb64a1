import type { FastifyReply, FastifyRequest } from "fastify"
import type { Done } from "./exchange.ts"

/** A hook of Fastify. Only `preParsing` passes a payload before `done`. */
export type Hook = (request: FastifyRequest, reply: FastifyReply, payload: unknown, done?: Done) => void

/** What Fastify keeps of a route, or of a 404 handler, with the functions that run before its handler. */
interface RouteContext {
  readonly config: unknown
  preHandler: readonly Hook[] | null
  /** Among them the context of the 404 handler. */
  readonly [key: symbol]: unknown
}

/**
 * Runs a function right before the handlers of the routes that it is told of, after every other `preHandler`.
 *
 * No public hook does: `onRoute` hooks miss the routes that are older than the plugin and the 404 handlers, and functions that are
 * registered later, for the app or by another `onRoute` hook, run after those that are there. Fastify makes the final list of a route when
 * the app is ready, and keeps it in a context that each request of the route refers to.
 */
export class BeforeHandler {
  readonly #run: Hook
  readonly #seen = new WeakSet<RouteContext>()
  /** The symbol under which requests refer to the context, once it has been found. Each copy of Fastify has its own. */
  #key: symbol | undefined

  constructor(run: Hook) {
    this.#run = run
  }

  /**
   * Adds the function to the route of a request that is in `onRequest`, and to the 404 handler that `reply.callNotFound()` hands the
   * request over to: Fastify runs no `onRequest` hook then. Returns false if this release of Fastify does not allow it.
   */
  addTo(request: FastifyRequest): boolean {
    const context = this.#contextOf(request)
    if (context === undefined) return false
    if (this.#seen.has(context)) return true
    this.#seen.add(context)
    const referred = Object.getOwnPropertySymbols(context).map((key) => context[key])
    for (const each of [context, ...referred.filter(isRouteContext)]) {
      const before = each.preHandler ?? []
      // Routes share the list of their 404 handler.
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

/** The context is known by its config, which is public. */
function isContext(request: FastifyRequest, key: symbol): boolean {
  const value = (request as Contextual)[key]
  return isRouteContext(value) && value.config === request.routeOptions.config
}

function isRouteContext(value: unknown): value is RouteContext {
  return typeof value === "object" && value !== null && "config" in value && "preHandler" in value
}
