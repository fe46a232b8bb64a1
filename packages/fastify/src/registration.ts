import { type Decision, decisionOn, InvalidOptionError } from "@sluice/core"
import { createThrowingGuard, hasRuleOption } from "@sluice/core/adapters"
import type {
  FastifyContextConfig,
  FastifyInstance,
  FastifyReply,
  FastifyRequest,
  RouteOptions,
} from "fastify"
import { BeforeHandler, type Hook } from "./before-handler.ts"
import { decide } from "./decide.ts"
import type { Done } from "./exchange.ts"
import { factsOf } from "./facts.ts"
import type { RateLimitOptions } from "./options.ts"
import {
  HOOKS,
  type HookName,
  hooksOf,
  type Limit,
  limitOf,
  notFoundLimit,
  parseHook,
  routeLimits,
} from "./routes.ts"
import { RegisteredSluice } from "./sluice.ts"

const NO_LAST_HOOK = new InvalidOptionError([
  {
    path: "hook",
    message:
      "this version of Fastify does not let the limiter decide after every preHandler, so the limiter decides in onRequest",
    accepted: 'hook: "preHandler", with the limiter registered after the hooks of the app',
  },
])

/** The key under which a route's config stores the limit that was created from its `rateLimit`. */
const LIMIT = Symbol("sluice.limit")
type Config = FastifyContextConfig & { [LIMIT]?: Limit }

/**
 * Adds the hooks and decorators of one registration to its scope. The function is async, because an error that a
 * Fastify plugin throws synchronously cannot be caught and ends the process.
 */
export async function registerLimiter(app: FastifyInstance, options: RateLimitOptions): Promise<void> {
  const { hook, notFound, ...others } = options
  const chosen = parseHook(hook, "hook")
  const guard = createThrowingGuard<FastifyRequest, FastifyReply>(
    hasRuleOption(options) ? others : { ...others, rules: [] },
    factsOf,
  )
  const inline = limitOf(guard, chosen)
  /** The limit of unknown routes; undefined if they are not limited. */
  const unknown =
    notFound === undefined ? inline : notFound === false ? undefined : notFoundLimit(inline, notFound, chosen)
  const ownLimitOf = routeLimits(inline, chosen)
  const sluice = new RegisteredSluice(guard)
  // Fastify rejects a second decorator of the same name, so let it reject a decorator that the app has already added.
  if (!(app.sluice instanceof RegisteredSluice)) app.decorateRequest("rateLimit", { getter: decisionOf })
  const nearest = Object.hasOwn(app, "sluice") ? app.sluice : undefined
  if (!(nearest instanceof RegisteredSluice)) app.decorate("sluice", sluice)
  // Fastify does not call an onRoute hook for older routes, so the limits of these routes are looked up during their
  // requests.
  const isLate = app.printRoutes() !== "(empty tree)"
  let anyOwn = isLate || unknown !== inline
  const needed = new Set([inline, unknown ?? inline].flatMap(hooksOf))
  const installed = isLate ? HOOKS.slice(0, -1) : HOOKS.filter((name) => needed.has(name))

  app.addHook("onRoute", function (route) {
    const { rateLimit } = route.config ?? {}
    if (rateLimit === undefined) return
    anyOwn = true
    if (rateLimit === false || this.sluice !== sluice) return
    const limit = ownLimitOf(route, rateLimit)
    route.config = { ...route.config, [LIMIT]: limit } as Config
    for (const name of hooksOf(limit) as readonly "onRequest"[]) {
      if (!installed.includes(name)) route[name] = [hookOf(name), ...[route[name] ?? []].flat()]
    }
  })

  function limitFor({ is404, routeOptions, server }: FastifyRequest): Limit | undefined {
    if (is404) return unknown
    const config: Config = routeOptions.config
    if (config.rateLimit === false) return undefined
    if (config.rateLimit === undefined || server.sluice !== sluice) return inline
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
  /** A request with its limit, and the last hook at which this limit was checked. */
  type Deciding = FastifyRequest & { [deciding]?: Limit; [reached]?: number }
  const decidesAtOnce = inline.plan.get("onRequest") === undefined && inline.plan.has("onRequest")

  function hookOf(name: HookName): Hook {
    return (request, reply, payload, done = payload as Done) => {
      // Avoid `decideAt` if possible, because reading a request's route and setting a member on the request are
      // expensive.
      if (anyOwn || name !== "onRequest" || !decidesAtOnce) decideAt(name, request, reply, done)
      else decide(guard, request, reply, done)
    }
  }
  const beforeHandler = new BeforeHandler(hookOf("handler"))

  function decideAt(name: HookName, request: Deciding, reply: FastifyReply, done: Done): void {
    const limit = request[deciding] ?? (anyOwn ? limitFor(request) : inline)
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
      // A request also gets here if its handler has passed it to the 404 handler, whose preHandler hooks then run.
      done()
    }
  }

  for (const name of installed) app.addHook(name as "onRequest", hookOf(name))
  app.addHook("onReady", async () => sluice.start())
  // Drain first, because closing the server waits for its open requests.
  app.addHook("preClose", async () => guard.drain())
  app.addHook("onClose", () => guard.close())
}

/** Returns the value of `request.rateLimit`. A getter, because Fastify would copy a plain value into every request. */
function decisionOf(this: FastifyRequest): Decision | undefined {
  return decisionOn(this)
}
