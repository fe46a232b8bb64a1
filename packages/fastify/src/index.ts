/**
 * Plugin for Fastify 5. The decision is available as `request.rateLimit`, a {@link Decision} of `@sluice/core`. A
 * route can have its own rule in `config.rateLimit`. `app.sluice` provides the limiter, and hooks with separate
 * limits.
 * @module @sluice/fastify
 */

import { type Decision, InvalidOptionError } from "@sluice/core"
import type { FastifyInstance, FastifyPluginAsync } from "fastify"
import fastifyPlugin from "fastify-plugin"
import type { RateLimitOptions, RouteRateLimit } from "./options.ts"
import { registerLimiter } from "./registration.ts"
import type { FastifySluice } from "./sluice.ts"

export { RefusalError } from "@sluice/core/adapters"
export type { HookRateLimit, RateLimitOptions, RouteRateLimit } from "./options.ts"
export type { HookName } from "./routes.ts"
export type { FastifySluice, RateLimitHook } from "./sluice.ts"

declare module "fastify" {
  interface FastifyInstance {
    /** The limiter of the nearest registration of the plugin, and hooks with separate limits. */
    readonly sluice: FastifySluice
  }
  interface FastifyRequest {
    /** The limiter's decision on this request. With several registrations, this is the binding decision. */
    readonly rateLimit: Decision | undefined
  }
  interface FastifyContextConfig {
    /** This route's own rule, or false for no rate limit at all. */
    rateLimit?: RouteRateLimit | false
  }
}

/**
 * Limits requests in Fastify 5, as a plugin. The plugin limits every route of its scope and of nested scopes,
 * including routes that are added later. The plugin also limits requests to which the scope responds with 404. If the
 * plugin is registered within `app.register(async (scope) => …)`, it only limits that scope.
 *
 * A route can have its own rule: `config: { rateLimit: { limit: 5, window: "1 minute" } }`. The rule replaces the
 * inline rule of the nearest registration. Rules of a list or source still apply. A route with
 * `config: { rateLimit: false }` is not limited.
 *
 * An invalid route rule throws when the route is added. If the route is older than the plugin (no `await`), its rule
 * is first read during a request. If the rule is invalid, a warning is logged and the inline rule applies.
 *
 * Each rule is checked as soon as the data that it reads exists. Rules by the app's own `fields` are checked after
 * every `preHandler` of the route, no matter where the `preHandler` was registered. When a later rule refuses, the
 * units of earlier rules stay taken, because the work that these rules protect, such as authentication, has already
 * run.
 *
 * A rule does not count requests to which Fastify or a hook of the app responds before the rule is checked. URLs that
 * cannot be decoded are never counted. Rules checked in `preValidation` or later do not count bodies that cannot be
 * parsed. Rules checked in `preHandler` or later do not count requests that the route's schema rejects. Rules checked
 * in `handler` do not count requests that authentication rejects.
 *
 * Closing the app closes the limiter, unless the limiter is shared. The plugin is also the default export of the module,
 * for `app.register(import("@sluice/fastify"), options)`.
 * @example
 * ```ts
 * import { rateLimit } from "@sluice/fastify"
 * import fastify from "fastify"
 *
 * const app = fastify()
 * await app.register(rateLimit, { limit: 100, window: "1 minute" })
 * app.get("/search", { config: { rateLimit: { limit: 3, window: "1 second" } } }, async (request) => ({
 *   remaining: request.rateLimit?.remaining,
 * }))
 * ```
 * @throws {@link InvalidOptionError} when the app starts, or immediately if the plugin is called instead of registered
 */
export const rateLimit: FastifyPluginAsync<RateLimitOptions> = fastifyPlugin(plugin, {
  name: "@sluice/fastify",
  fastify: ">=5 <6",
})

const CALLED = {
  path: "",
  message: "rateLimit of @sluice/fastify is a plugin, so it must be registered and not called",
  accepted:
    'app.register(rateLimit, { limit: 100, window: "1 minute" }); ' +
    "use @sluice/express for Express and @sluice/koa for Koa",
}

function plugin(app: FastifyInstance, options: RateLimitOptions): Promise<void> {
  // The app has called the plugin like another framework's middleware factory, or another framework has called it.
  // Throw synchronously, because Express 4 ignores promises. The request would never get a response, and the
  // unhandled rejection would end the process.
  if (typeof app?.addHook !== "function") throw new InvalidOptionError([CALLED])
  return registerLimiter(app, options)
}

export { rateLimit as default }
