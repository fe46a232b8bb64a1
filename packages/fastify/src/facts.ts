import type { RequestFacts } from "@sluice/core"
import { ServerFacts } from "@sluice/core/adapters"
import type { FastifyRequest } from "fastify"

/** The facts of a Fastify request. Each fact is read only when a rule needs it. */
export class FastifyFacts extends ServerFacts<FastifyRequest> {
  /** Returns the URL after the app's `rewriteUrl`. */
  get routedUrl(): string | undefined {
    return this.request.raw.url
  }
  /** Returns the pattern of the route; undefined if the URL does not match a route. */
  get route(): string | undefined {
    return this.request.routeOptions.url
  }
  /** Only with this setting, Fastify provides a list of addresses. */
  get proxySetting(): string | undefined {
    return this.request.ips === undefined ? undefined : 'Fastify\'s setting "trustProxy"'
  }
}

/**
 * Returns the facts of a request that the app passes to a limiter directly; undefined if it is not a Fastify request.
 */
export function factsOf(request: object): RequestFacts | undefined {
  if (!("routeOptions" in request && "raw" in request)) return undefined
  return new FastifyFacts(request as FastifyRequest, request.raw as FastifyRequest["raw"])
}
