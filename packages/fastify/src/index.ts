/**
 * Plugin for Fastify 5. What was decided is on the request: `request.rateLimit`, a {@link Decision} of `@sluice/core`. A route has
 * a rule of its own in its `config.rateLimit`.
 * @module @sluice/fastify
 */

import {
  createGuard,
  type Decision,
  decisionOn,
  type Guard,
  type GuardOptions,
  hasRuleOption,
  InvalidOptionError,
  type Rule,
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
import { factsOf } from "./facts.ts"
import { type Done, decide } from "./respond.ts"
import { HOOKS, type HookName, type Limit, parseHook, routeLimits } from "./routes.ts"

export type { HookName } from "./routes.ts"

/** Limiter options, or a limiter to share; or no rule at all, where only some routes have one. */
export type RateLimitOptions = GuardOptions<FastifyRequest, FastifyReply> & {
  /**
   * When requests are decided. Default: `onRequest` when no rule can ever read more than what is there by then, else
   * `preHandler`, after authentication, the body parser and validation, which may make another body of what was sent: in
   * `preValidation` a rule by `body:` wants `onMissing: "deny"` beside it.
   */
  readonly hook?: HookName
}

/** A route's own rule, in place of the plugin's inline one. Its name defaults to method and URL. */
export interface RouteRateLimit extends Omit<Rule<FastifyRequest>, "field"> {
  /** Whose requests are counted together: default "ip". */
  readonly field?: Rule["field"] | undefined
  /** Routes of one group share one counter; they need the same rule. */
  readonly group?: string
  /**
   * Default: the hook that was given to the plugin; else the plugin's own, or `preHandler` when this rule reads what is not there on
   * arrival.
   */
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
 * What Fastify refuses by itself is not counted: a URL that cannot be decoded; where requests are decided in `preValidation`
 * or later a body that cannot be parsed; and in `preHandler` what the route's schema refuses. Closing the app closes the
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

type Hook = (request: FastifyRequest, reply: FastifyReply, payload: unknown, done?: Done) => void
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
  const inline: Limit = { guard, hook: chosen ?? (guard.readsArrivalOnly ? "onRequest" : "preHandler") }
  const limitOf = routeLimits(inline, chosen)
  const isFirst = !(NEAREST in app)
  if (!Object.hasOwn(app, NEAREST)) app[NEAREST] = inline
  // No onRoute hook is told of routes that are older than it, so these are looked up when they are asked for.
  const isLate = app.printRoutes() !== "(empty tree)"
  let anyOwn = isLate

  app.addHook("onRoute", function (this: Scope, route) {
    const { rateLimit } = route.config ?? {}
    if (rateLimit === undefined) return
    anyOwn = true
    if (rateLimit === false || this[NEAREST] !== inline) return
    const limit = limitOf(route, rateLimit)
    route.config = { ...route.config, [LIMIT]: limit } as Config
    // Stryker disable next-line ConditionalExpression: who comes second decides nothing
    if (limit.hook === inline.hook) return
    Object.assign(route, { [limit.hook]: [hookOf(limit.hook), ...[route[limit.hook] ?? []].flat()] })
  })

  let isNew = false
  function limitFor({ routeOptions, server }: FastifyRequest): Limit | undefined {
    const config: Config = routeOptions.config
    if (config.rateLimit === false) return undefined
    if (config.rateLimit === undefined || (server as Scope)[NEAREST] !== inline) return inline
    isNew = config[LIMIT] === undefined
    try {
      config[LIMIT] ??= limitOf(routeOptions as RouteOptions, config.rateLimit)
    } catch (error) {
      config[LIMIT] = inline
      guard.warn(error as InvalidOptionError)
    }
    return config[LIMIT]
  }

  const decider = Symbol("sluice.decider")
  type Decided = FastifyRequest & { [decider]?: Guard<FastifyRequest> }
  const hookOf =
    (name: HookName): Hook =>
    (request, reply, payload, done = payload as Done) => {
      // Asking Fastify for a request's route is dear, and so is a mark on each request of who has decided it.
      // Stryker disable next-line ConditionalExpression,EqualityOperator,StringLiteral: with both it is decided the same
      if (anyOwn || guard.settles || name !== "onRequest") decideOnce(name, request, reply, done)
      else decide(guard, request, reply, done)
    }

  function decideOnce(name: HookName, request: Decided, reply: FastifyReply, done: Done): void {
    // A handler may hand its request over to the 404 handler, whose preHandler hooks run then.
    const isFirst = request[decider] === undefined
    const limit = isFirst ? (anyOwn ? limitFor(request) : inline) : undefined
    if (isNew) {
      // In its first turn a guard would take itself for one that the app makes in a handler, and warn of that.
      // Not by queueMicrotask, which a test that fakes timers may have stopped.
      void Promise.resolve().then(() => decideOnce(name, request, reply, done))
    } else if (limit?.hook !== name) done()
    else {
      request[decider] = limit.guard
      decide(limit.guard, request, reply, done)
    }
  }

  for (const name of isLate ? HOOKS : [inline.hook]) app.addHook(name as "onRequest", hookOf(name))

  // Of an app that has one of this name already Fastify refuses it.
  if (isFirst) app.decorateRequest("rateLimit", { getter: decisionOf })
  // Stryker disable next-line ConditionalExpression: what takes no refunds gives none back
  if (guard.settles) {
    app.addHook("onResponse", (request: Decided, reply, done) => {
      // Over HTTP/2 this runs, too, for a client that has cancelled its request: the units stay taken.
      if (reply.raw.writableEnded) request[decider]?.settle(request, reply.statusCode)
      done()
    })
  }
  // Before the server waits for the requests that it has.
  app.addHook("preClose", async () => guard.drain())
  app.addHook("onClose", () => guard.close())
}

/** What `request.rateLimit` yields. A decorator with a value would be written into every request. */
function decisionOf(this: FastifyRequest): Decision | undefined {
  return decisionOn(this)
}
