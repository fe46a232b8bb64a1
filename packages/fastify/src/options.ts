import type { OnRejected } from "@sluice/core"
import type { GuardOptions, InFlightRule, RateRule, RefusalOptions } from "@sluice/core/adapters"
import type { FastifyReply, FastifyRequest } from "fastify"
import type { HookName } from "./routes.ts"

/** Limiter options, or a limiter to share. The options may lack a rule if only some routes have one. */
export type RateLimitOptions = GuardOptions<FastifyRequest, FastifyReply> &
  RefusalOptions & {
    /**
     * The hook at which all rules are checked. By default, each rule is checked as soon as the data that it reads
     * exists:
     *
     * `onRequest` checks rules by address, method, route, header, query, parameter or cookie.
     *
     * `preHandler` checks rules by `body:`, after the body parser and validation. With a `cost` or `skip` function,
     * it also checks the rules of `onRequest`.
     *
     * `handler` checks rules by the app's own `fields`, or with a `limit` or `match` function. It runs after every
     * `preHandler` of the route.
     */
    readonly hook?: HookName
    /**
     * The rule for requests of unknown routes, to which the scope responds with 404. The rule replaces the inline
     * rule. If false, these requests are not limited. The rule's name defaults to "not-found". Default: the inline
     * rule.
     */
    readonly notFound?: RouteRateLimit | false
  }

/** A rule for the requests that pass through a hook of `app.sluice.hook()`. */
export type HookRateLimit = (
  | Omit<RateRule<FastifyRequest>, "field">
  | Omit<InFlightRule<FastifyRequest>, "field">
) & {
  /** The fields whose values identify a counter. Default: "ip". */
  readonly field?: string | readonly string[] | undefined
  /** The group of the route or hook. Routes and hooks of a group share one counter and need the same rule. */
  readonly group?: string
  /** Sends the response to a refused request. Default: the `onRejected` of the plugin. */
  readonly onRejected?: OnRejected<FastifyRequest, FastifyReply> | undefined
}

/**
 * A route's own rule, which replaces the plugin's inline rule. The rule's name defaults to the route's method and URL.
 */
export type RouteRateLimit = HookRateLimit & {
  /**
   * The hook at which all rules of the route are checked. Default: the plugin's `hook`. If neither is set, each rule
   * is checked as soon as the data that it reads exists.
   */
  readonly hook?: HookName
}
