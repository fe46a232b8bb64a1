/**
 * Plugin for Fastify 5. The decision is on the request: `request.rateLimit`, a {@link Decision} of `@sluice/core`. A
 * route can have its own rule in `config.rateLimit`.
 * @module @sluice/fastify
 */

import {
  createGuard,
  type Decision,
  type DecisionStep,
  decisionOn,
  type Guard,
  type GuardOptions,
  hasRuleOption,
  InvalidOptionError,
  type Rule,
  respond,
} from "@sluice/core"
import type {
  FastifyContextConfig,
  FastifyInstance,
  FastifyPluginAsync,
  FastifyReply,
  FastifyRequest,
  RouteOptions,
} from "fastify"
import fastifyPlugin from "fastify-plugin"
import { BeforeHandler, type Hook } from "./before-handler.ts"
import { type Done, FastifyExchange } from "./exchange.ts"
import { FastifyFacts, factsOf } from "./facts.ts"
import { HOOKS, type HookName, hooksOf, type Limit, limitOf, parseHook, routeLimits } from "./routes.ts"

export type { HookName } from "./routes.ts"

/** Limiter options, or a limiter to share. The options may lack a rule if only some routes have one. */
export type RateLimitOptions = GuardOptions<FastifyRequest, FastifyReply> & {
  /**
   * The hook at which all rules are decided. By default, each rule is decided as soon as the data that it reads exists:
   *
   * `onRequest` decides rules by address, method, route, header, query, parameter or cookie.
   *
   * `preHandler` decides rules by `body:`, after the body parser and validation. With a `cost` or `skip` function, it
   * also decides the rules of `onRequest`.
   *
   * `handler` decides rules by the app's own `fields`, or with a `limit` function. It comes after every
   * `preHandler` of the route.
   */
  readonly hook?: HookName
}

/** A route's own rule, which replaces the plugin's inline rule. Its name defaults to method and URL. */
export interface RouteRateLimit extends Omit<Rule<FastifyRequest>, "field"> {
  /** The fields whose values identify a counter. Default: "ip". */
  readonly field?: Rule["field"] | undefined
  /** The group of the route. Routes of a group share one counter and need the same rule. */
  readonly group?: string
  /**
   * The hook at which all rules of the route are decided. Default: the plugin's `hook`. If that is not set either, each
   * rule is decided as soon as the data that it reads exists.
   */
  readonly hook?: HookName
}

declare module "fastify" {
  interface FastifyRequest {
    /** The limiter's decision on this request. With several registrations, it is the decision that binds. */
    readonly rateLimit: Decision | undefined
  }
  interface FastifyContextConfig {
    /** This route's own rule, or false for no rate limit at all. */
    rateLimit?: RouteRateLimit | false
  }
}

/**
 * Limits requests in Fastify 5, as a plugin. It limits every route of its scope and of the scopes inside, including
 * routes that are added later. It also limits requests that the scope answers with 404. If it is registered within
 * `app.register(async (scope) => …)`, it only limits that scope.
 *
 * A route can have its own rule: `config: { rateLimit: { limit: 5, window: "1 minute" } }`. The rule replaces the
 * inline rule of the nearest registration. Rules of a list or source still apply. A route with
 * `config: { rateLimit: false }` is not limited.
 *
 * An invalid route rule throws when the route is added. If the route is older than the plugin (no `await`), its rule is
 * first read during a request. If it is invalid, a warning is logged and the inline rule applies.
 *
 * Each rule is decided as soon as the data that it reads exists. Rules by the app's own `fields` are decided after
 * every `preHandler` of the route, no matter where that was registered. When a later rule refuses, the units of earlier
 * rules are refunded.
 *
 * A rule does not count requests that Fastify or a hook of the app answers before the rule is decided. URLs that cannot
 * be decoded are never counted. Rules decided in `preValidation` or later do not count bodies that cannot be parsed.
 * Rules decided in `preHandler` or later do not count requests that the route's schema rejects. Rules decided in
 * `handler` do not count requests that authentication rejects.
 *
 * Closing the app closes the limiter, unless the limiter is shared.
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
 * @throws {@link InvalidOptionError} when the app starts, or at once if the plugin is called instead of registered
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

const NO_LAST_HOOK = new InvalidOptionError([
  {
    path: "hook",
    message:
      "this version of Fastify does not let the limiter decide after every preHandler, so the limiter decides in onRequest",
    accepted: 'hook: "preHandler", with the limiter registered after the hooks of the app',
  },
])

/**
 * The key of a scope's limit, from the nearest registration. Scopes inside inherit it. A route's own limit replaces it.
 */
const NEAREST = Symbol("sluice.nearest")
type Scope = FastifyInstance & { [NEAREST]?: Limit }
/** The key in a route's config of the limit that was made from its `rateLimit`. */
const LIMIT = Symbol("sluice.limit")
type Config = FastifyContextConfig & { [LIMIT]?: Limit }

function plugin(app: Scope, options: RateLimitOptions): Promise<void> {
  // The app has called the plugin like another framework's middleware factory, or another framework has called it.
  // Throw synchronously, because Express 4 ignores promises. Its request would wait forever, and the unhandled
  // rejection would end the process.
  if (typeof app?.addHook !== "function") throw new InvalidOptionError([CALLED])
  return register(app, options)
}

// Async, because an error that a plugin throws synchronously in Fastify cannot be caught and ends the process.
async function register(app: Scope, options: RateLimitOptions): Promise<void> {
  const { hook, ...rest } = options
  const chosen = parseHook(hook, "hook")
  const guard = createGuard<FastifyRequest, FastifyReply>(
    hasRuleOption(options) ? rest : { ...rest, rules: [] },
    factsOf,
  )
  const inline = limitOf(guard, chosen)
  const ownLimitOf = routeLimits(inline, chosen)
  const isFirst = !(NEAREST in app)
  if (!Object.hasOwn(app, NEAREST)) app[NEAREST] = inline
  // Fastify does not call an onRoute hook for older routes, so these are looked up when they are requested.
  const isLate = app.printRoutes() !== "(empty tree)"
  let anyOwn = isLate
  const installed = isLate ? HOOKS.slice(0, -1) : hooksOf(inline)

  app.addHook("onRoute", function (this: Scope, route) {
    const { rateLimit } = route.config ?? {}
    if (rateLimit === undefined) return
    anyOwn = true
    if (rateLimit === false || this[NEAREST] !== inline) return
    const limit = ownLimitOf(route, rateLimit)
    route.config = { ...route.config, [LIMIT]: limit } as Config
    for (const name of hooksOf(limit) as readonly "onRequest"[]) {
      if (!installed.includes(name)) route[name] = [hookOf(name), ...[route[name] ?? []].flat()]
    }
  })

  let isNew = false
  function limitFor({ routeOptions, server }: FastifyRequest): Limit | undefined {
    const config: Config = routeOptions.config
    if (config.rateLimit === false) return undefined
    if (config.rateLimit === undefined || (server as Scope)[NEAREST] !== inline) return inline
    isNew = config[LIMIT] === undefined
    try {
      config[LIMIT] ??= ownLimitOf(routeOptions as RouteOptions, config.rateLimit)
    } catch (error) {
      config[LIMIT] = inline
      guard.warn(error as InvalidOptionError)
    }
    return config[LIMIT]
  }

  const deciding = Symbol("sluice.deciding")
  const reached = Symbol("sluice.reached")
  /** A request with the limit that decides it, and the last hook at which the limit has decided. */
  type Deciding = FastifyRequest & { [deciding]?: Limit; [reached]?: number }
  const decidesAtOnce = inline.plan.get("onRequest") === undefined && inline.plan.has("onRequest")

  function hookOf(name: HookName): Hook {
    return (request, reply, payload, done = payload as Done) => {
      // Avoid `decideAt` if possible: reading a request's route and setting a member on the request are expensive.
      if (anyOwn || guard.settles || name !== "onRequest" || !decidesAtOnce) {
        decideAt(name, request, reply, done)
      } else decide(guard, request, reply, done)
    }
  }
  const beforeHandler = new BeforeHandler(hookOf("handler"))

  function decideAt(name: HookName, request: Deciding, reply: FastifyReply, done: Done): void {
    const limit = request[deciding] ?? (anyOwn ? limitFor(request) : inline)
    if (isNew) {
      isNew = false
      // Wait a turn, because a guard that checks in its first turn warns that it was created in a handler.
      // Do not use queueMicrotask, because a test with fake timers may have stopped it.
      Promise.resolve()
        .then(() => decideAt(name, request, reply, done))
        .catch(done)
      return
    }
    if (limit === undefined) {
      done()
      return
    }
    request[deciding] = limit
    const { plan } = limit
    const position = HOOKS.indexOf(name)
    if (name === "onRequest" && plan.has("handler") && !beforeHandler.addTo(request)) {
      guard.warn(NO_LAST_HOOK)
      request[reached] = HOOKS.length
      decide(limit.guard, request, reply, done)
    } else if (plan.has(name) && position > (request[reached] ?? -1)) {
      request[reached] = position
      decide(limit.guard, request, reply, done, plan.get(name))
    } else {
      // Also reached if a handler has passed its request to the 404 handler, because its preHandler hooks run then.
      done()
    }
  }

  for (const name of installed) app.addHook(name as "onRequest", hookOf(name))

  // Fastify rejects a second decorator of the same name.
  if (isFirst) app.decorateRequest("rateLimit", { getter: decisionOf })
  if (guard.settles) {
    app.addHook("onResponse", (request: Deciding, reply, done) => {
      // Over HTTP/2, this also runs if the client has cancelled its request. Its units must stay taken.
      if (reply.raw.writableEnded) request[deciding]?.guard.settle(request, reply.statusCode)
      done()
    })
  }
  // Drain before the server waits for its open requests.
  app.addHook("preClose", async () => guard.drain())
  app.addHook("onClose", () => guard.close())
}

/** Lets the guard decide on a request, at one step or by all rules at once. */
function decide(
  guard: Guard<FastifyRequest>,
  request: FastifyRequest,
  reply: FastifyReply,
  done: Done,
  step?: DecisionStep,
): void {
  const later = respond(guard, new FastifyFacts(request), new FastifyExchange(request, reply, done), step)
  // Fastify also passes an error that a hook throws synchronously to `done`.
  if (later instanceof Promise) later.catch(done)
}

/** Returns the value of `request.rateLimit`. A getter, because Fastify would copy a plain value into every request. */
function decisionOf(this: FastifyRequest): Decision | undefined {
  return decisionOn(this)
}
