/**
 * Plugin for Fastify 5. What was decided is on the request: `request.rateLimit`, a {@link Decision} of `@sluice/core`. A route has
 * a rule of its own in its `config.rateLimit`.
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

/** Limiter options, or a limiter to share; or no rule at all, where only some routes have one. */
export type RateLimitOptions = GuardOptions<FastifyRequest, FastifyReply> & {
  /**
   * Decides all rules at one moment. Default: each rule is decided as soon as what it reads is there.
   *
   * `onRequest`: rules by address, method, route, header, query, parameter or cookie. `preHandler`: rules by `body:`, after the body parser
   * and validation, and with a `cost` or `skip` function every rule that would be decided before. `handler`, after every `preHandler` of
   * the route: rules by the app's own `fields`, or with a `limit` function.
   */
  readonly hook?: HookName
}

/** A route's own rule, in place of the plugin's inline one. Its name defaults to method and URL. */
export interface RouteRateLimit extends Omit<Rule<FastifyRequest>, "field"> {
  /** Whose requests are counted together: default "ip". */
  readonly field?: Rule["field"] | undefined
  /** Routes of one group share one counter; they need the same rule. */
  readonly group?: string
  /** Decides all rules of the route at one moment. Default: the plugin's `hook`; else each rule as soon as what it reads is there. */
  readonly hook?: HookName
}

declare module "fastify" {
  interface FastifyRequest {
    /** What the limiter has decided on this request; of several registrations, the decision that binds. */
    readonly rateLimit: Decision | undefined
  }
  interface FastifyContextConfig {
    /** This route's own rule, or false for no rate limit at all. */
    rateLimit?: RouteRateLimit | false
  }
}

/**
 * Plugin for Fastify 5. It limits every route of the scope it is registered in and of the scopes inside, whenever they are
 * added, and what the scope answers with 404.
 * Registered within `app.register(async (scope) => …)` it limits that scope alone.
 *
 * A route says `config: { rateLimit: { limit: 5, window: "1 minute" } }` for a rule of its own, in place of the inline
 * rule of the nearest registration, or `config: { rateLimit: false }`. Rules of a list or source go on applying.
 * A wrong one throws where the route is added. Of a route that is older than the plugin (no `await`) it is seen when the
 * route is first asked for: that is warned of, and the inline rule applies.
 *
 * Each rule is decided as soon as what it reads is there: rules by the app's own `fields` after every `preHandler` of the route, wherever
 * that was registered. When a later rule refuses, what the earlier ones have taken is given back.
 *
 * A rule does not count what is answered before it is decided, by Fastify or by a hook of the app: a URL that cannot be decoded; from
 * `preValidation` on a body that cannot be parsed; in `preHandler` what the route's schema refuses; in `handler` what authentication
 * refuses. Closing the app closes the
 * limiter, unless it is a shared one.
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
 * @throws {@link InvalidOptionError} when the app starts, and at once when it is called and not registered
 */
export const rateLimit: FastifyPluginAsync<RateLimitOptions> = fastifyPlugin(plugin, {
  name: "@sluice/fastify",
  fastify: ">=5 <6",
})

const CALLED = {
  path: "",
  message:
    "rateLimit of @sluice/fastify is a plugin: not called with them, but handed to Fastify beside them",
  accepted:
    'app.register(rateLimit, { limit: 100, window: "1 minute" }); ' +
    "rateLimit of @sluice/express in Express, and of @sluice/koa in Koa",
}

const NO_LAST_HOOK = new InvalidOptionError([
  {
    path: "hook",
    message:
      "this release of Fastify does not let the limiter decide after every preHandler, so it decides in onRequest",
    accepted: 'hook: "preHandler", in an app that adds its hooks before the limiter',
  },
])

/** Of a scope, and so of those inside: the limit of the nearest registration, in whose place routes have their own. */
const NEAREST = Symbol("sluice.nearest")
type Scope = FastifyInstance & { [NEAREST]?: Limit }
/** Of a route's config: the limit that has been made of its `rateLimit`. */
const LIMIT = Symbol("sluice.limit")
type Config = FastifyContextConfig & { [LIMIT]?: Limit }

function plugin(app: Scope, options: RateLimitOptions): Promise<void> {
  // Somebody has called the plugin, as other frameworks' middleware is made, or one of these has. Thrown at once: Express 4
  // looks at no promise, so that a request of it would wait for ever, and a rejection that nobody handles end the process.
  if (typeof app?.addHook !== "function") throw new InvalidOptionError([CALLED])
  return register(app, options)
}

// Async, because what a plugin throws in Fastify is nobody's to catch and ends the process.
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
  // No onRoute hook is told of routes that are older than it, so these are looked up when they are asked for.
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
  /** A request, the limit that decides it, and the last hook at which that has been asked. */
  type Deciding = FastifyRequest & { [deciding]?: Limit; [reached]?: number }
  const decidesAtOnce = inline.plan.get("onRequest") === undefined && inline.plan.has("onRequest")

  function hookOf(name: HookName): Hook {
    return (request, reply, payload, done = payload as Done) => {
      // Asking Fastify for a request's route is expensive, and so is a mark on each request.
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
      // In its first turn a guard would take itself for one that the app makes in a handler, and warn of that.
      // Not by queueMicrotask, which a test that fakes timers may have stopped.
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
      // Also where a handler has handed its request over to the 404 handler, whose preHandler hooks run then.
      done()
    }
  }

  for (const name of installed) app.addHook(name as "onRequest", hookOf(name))

  // Of an app that has one of this name already Fastify refuses it.
  if (isFirst) app.decorateRequest("rateLimit", { getter: decisionOf })
  if (guard.settles) {
    app.addHook("onResponse", (request: Deciding, reply, done) => {
      // Over HTTP/2 this runs, too, for a client that has cancelled its request: the units stay taken.
      if (reply.raw.writableEnded) request[deciding]?.guard.settle(request, reply.statusCode)
      done()
    })
  }
  // Before the server waits for the requests that it has.
  app.addHook("preClose", async () => guard.drain())
  app.addHook("onClose", () => guard.close())
}

/** Has the guard decide on a request, at one step or by all rules at once. */
function decide(
  guard: Guard<FastifyRequest>,
  request: FastifyRequest,
  reply: FastifyReply,
  done: Done,
  step?: DecisionStep,
): void {
  const later = respond(guard, new FastifyFacts(request), new FastifyExchange(request, reply, done), step)
  // Fastify does the same with what a hook throws at once.
  if (later instanceof Promise) later.catch(done)
}

/** What `request.rateLimit` yields. A decorator with a value would be written into every request. */
function decisionOf(this: FastifyRequest): Decision | undefined {
  return decisionOn(this)
}
