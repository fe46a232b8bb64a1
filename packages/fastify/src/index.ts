import {
  createGuard,
  type Decision,
  type Guard,
  type GuardOptions,
  InvalidOptionError,
  type Rule,
} from "@sluice/core"
import type { FastifyInstance, FastifyPluginAsync, FastifyRequest } from "fastify"
import fastifyPlugin from "fastify-plugin"
import { decide, decisionOf } from "./decide.ts"
import { factsOf } from "./facts.ts"
import {
  appRecord,
  type Decide,
  type HookName,
  type Mount,
  nearestMount,
  type OwnRoute,
  ownRoute,
} from "./own-routes.ts"
import { isHook, notAHook, RouteLimits } from "./route-limits.ts"

/** Limiter options, or a limiter to share; or no rule at all, where only some routes have one. */
export type RateLimitOptions = GuardOptions<FastifyRequest> & {
  /**
   * When requests are decided. Default: `onRequest` when no rule can ever read more than what is there by then, else
   * `preHandler`, after authentication, the body parser and validation.
   */
  readonly hook?: HookName
}

/** A route's own rule, in place of the plugin's inline one. Its field defaults to "ip", its name to method and URL. */
export interface RouteRateLimit extends Rule<FastifyRequest> {
  /** Routes of one group share one counter; they need the same rule. */
  readonly group?: string
  /** Default: the plugin's hook, or `preHandler` when this rule reads what is not there on arrival. */
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
 * Plugin for Fastify 5: `app.register(rateLimit, { limit: 100, window: "1 minute" })`. It limits every route of the
 * scope it is registered in and of the scopes inside, whenever they are added, and what the scope answers with 404.
 * Registered within `app.register(async (scope) => …)` it limits that scope alone.
 *
 * A route says `config: { rateLimit: { limit: 5, window: "1 minute" } }` for a rule of its own, in place of the inline
 * rule of the nearest registration, or `config: { rateLimit: false }`. Rules of a list or source go on applying.
 *
 * What Fastify refuses by itself is not counted: a URL that cannot be decoded, and where requests are decided in
 * `preValidation` or later a body that cannot be parsed. Closing the app closes the limiter, unless it is a shared one.
 * @throws InvalidOptionError when the app starts, with everything that is wrong
 */
export const rateLimit: FastifyPluginAsync<RateLimitOptions> = fastifyPlugin(register, {
  name: "@sluice/fastify",
  fastify: ">=5 <6",
})

// Async, because what a plugin with a callback throws is nobody's to catch and ends the process.
async function register(app: FastifyInstance, options: RateLimitOptions): Promise<void> {
  const { hook: chosen, ...guardOptions } = options
  if (chosen !== undefined && !isHook(chosen)) {
    const [message, accepted] = notAHook(chosen)
    throw new InvalidOptionError([{ path: "hook", message, accepted }])
  }
  const ruled = hasRule(options) ? guardOptions : { ...guardOptions, rules: [] }
  const guard = createGuard<FastifyRequest>(ruled, factsOf)
  const hook = chosen ?? (guard.readsArrivalOnly ? "onRequest" : "preHandler")
  const record = appRecord(app)
  const mount: Mount = { scope: app }
  record.mounts.push(mount)

  if (!app.hasRequestDecorator("rateLimit")) app.decorateRequest("rateLimit", { getter: decisionOf })

  // Who has decided a request. Its handler may hand it over to the 404 handler, whose preHandler hooks run then.
  const decider = Symbol("sluice.decider")
  type Decided = FastifyRequest & { [decider]?: Guard<FastifyRequest> }
  const remembers = guard.settles || hook === "preHandler"

  const decideBy =
    (by: Guard<FastifyRequest>): Decide =>
    (request, reply, next) => {
      if (remembers) {
        if ((request as Decided)[decider] !== undefined) return next()
        ;(request as Decided)[decider] = by
      }
      decide(by, request, reply, next)
    }

  const decideOthers = decideBy(guard)
  /** What this registration does on routes that say something themselves. */
  const ownLimits = new Map<OwnRoute, Decide>()
  let anyOwn = true

  const atHook: Decide = (request, reply, next) => {
    // Asking Fastify for a request's route is dear where no route says anything.
    const own = anyOwn ? ownRoute(request) : undefined
    if (own !== undefined) (ownLimits.get(own) ?? decideOthers)(request, reply, next)
    else if (anyOwn && request.routeOptions.config.rateLimit !== undefined) next(unseen(request))
    else decideOthers(request, reply, next)
  }
  if (hook !== "preParsing") app.addHook(hook as "onRequest", atHook)
  else app.addHook(hook, (request, reply, _payload, next) => atHook(request, reply, next))

  app.addHook("onReady", async () => {
    const limits = new RouteLimits(guard, hook, chosen !== undefined)
    for (const route of record.routes) {
      if (route.written === false) ownLimits.set(route, goOn)
      else if (nearestMount(record, route) === mount) {
        const limit = limits.of(route)
        if (limit === undefined) continue
        const decideRoute = decideBy(limit.guard)
        if (limit.hook !== hook) route.decide = decideRoute
        ownLimits.set(route, limit.hook === hook ? decideRoute : goOn)
      }
    }
    if (limits.problems.length > 0) throw new InvalidOptionError(limits.problems)
    anyOwn = ownLimits.size > 0 || !record.fromTheStart
  })

  if (guard.settles) {
    // Not for a client that hangs up before it has been answered: the units stay taken.
    app.addHook("onResponse", (request, reply, next) => {
      ;(request as Decided)[decider]?.settle(request, reply.statusCode)
      next()
    })
  }
  app.addHook("onClose", () => guard.close())
}

const goOn: Decide = (_request, _reply, next) => next()

function hasRule(options: RateLimitOptions): boolean {
  return ["limit", "window", "rules", "limiter"].some((name) => name in options)
}

function unseen({ routeOptions }: FastifyRequest): InvalidOptionError {
  return new InvalidOptionError([
    {
      path: `route ${routeOptions.method} ${routeOptions.url} config.rateLimit`,
      message:
        "was not seen, because the route is older than the plugin and the app is older than the import",
      accepted:
        'import of "@sluice/fastify" before the app is made, or an awaited app.register before the route',
    },
  ])
}
