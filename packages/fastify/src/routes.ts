import { inspect } from "node:util"
import { InvalidOptionError } from "@sluice/core"
import type { DecisionStep, Guard, GuardedRoute } from "@sluice/core/adapters"
import type { FastifyRequest, RouteOptions } from "fastify"

/**
 * A Fastify hook at which requests can be checked. "handler" means right before the handler, after every
 * `preHandler`.
 */
export type HookName = "onRequest" | "preParsing" | "preValidation" | "preHandler" | "handler"

/** All hooks, in the order in which they run. */
export const HOOKS: readonly HookName[] = [
  "onRequest",
  "preParsing",
  "preValidation",
  "preHandler",
  "handler",
]

/** The hook at which the data of a step exists. */
const HOOK_OF: Readonly<Record<DecisionStep, HookName>> = {
  arrival: "onRequest",
  body: "preHandler",
  app: "handler",
}

/** The guard that checks a request, and the hooks at which it does so. */
export interface Limit {
  readonly guard: Guard<FastifyRequest>
  /** The hooks, each with the step whose rules are checked there; undefined for all rules. */
  readonly plan: ReadonlyMap<HookName, DecisionStep | undefined>
}

/**
 * Creates a limit that checks all rules at `hook`. Without `hook`, it checks each rule as soon as the rule's data
 * exists.
 */
export function limitOf(guard: Guard<FastifyRequest>, hook: HookName | undefined): Limit {
  if (hook !== undefined) return { guard, plan: new Map([[hook, undefined]]) }
  const { steps } = guard
  const isOne = steps.length === 1
  return { guard, plan: new Map(steps.map((step) => [HOOK_OF[step], isOne ? undefined : step])) }
}

/** Returns the Fastify hooks that a limit needs. A function that runs before the handler is added in `onRequest`. */
export function hooksOf({ plan }: Limit): readonly HookName[] {
  return HOOKS.slice(0, -1).filter((name) => plan.has(name) || (name === "onRequest" && plan.has("handler")))
}

type Route = Pick<RouteOptions, "method" | "url" | "constraints">

/**
 * Returns a function that creates a limit from a route's `config.rateLimit`, with one counter for each route or
 * group. `plugin` is the limit of all other routes. `chosen` is the hook that the app has set. The returned function
 * throws InvalidOptionError.
 */
export function routeLimits(plugin: Limit, chosen?: HookName): (route: Route, written: unknown) => Limit {
  const seen = new Map<string, { readonly written: unknown; readonly isHead: boolean }>()
  return (route, written) => {
    const label = routeLabel(route)
    const path = `route ${label} config.rateLimit`
    const counter = counterOf(route, written)
    const limit = ownLimit(plugin, written, { label: `route ${label}`, counter, path }, chosen)
    if (!seen.has(counter)) seen.set(counter, { written, isHead: isHead(route) })
    return limit
  }

  /**
   * Returns the counter of a route. A HEAD route that Fastify adds uses the counter of its original route, even if
   * that route has other methods. For "/" under a prefix, Fastify reports one route, "/users", but two HEAD routes,
   * "/users" and "/users/". Either HEAD route may be requested first.
   */
  function counterOf(route: Route, written: unknown): string {
    const counter = counterLabel(route)
    if (seen.has(counter)) return counter
    const others = [route.url.replace(/\/$/, ""), `${route.url}/`].map((url) =>
      counterLabel({ ...route, url }),
    )
    const isSame = (other: string): boolean => {
      const known = seen.get(other)
      return known !== undefined && known.written === written && (known.isHead || isHead(route))
    }
    return others.find(isSame) ?? counter
  }
}

/** Creates the limit of unknown routes from the plugin's option `notFound`. Throws InvalidOptionError. */
export function notFoundLimit(plugin: Limit, written: unknown, chosen?: HookName): Limit {
  return ownLimit(plugin, written, { label: "notFound", counter: "not-found", path: "notFound" }, chosen)
}

/** Creates the limit of a rule that replaces the plugin's inline rule. */
function ownLimit(
  plugin: Limit,
  written: unknown,
  route: GuardedRoute & { readonly path: string },
  chosen: HookName | undefined,
): Limit {
  const { hook } = Object(written) as { readonly hook?: unknown }
  const own = parseHook(hook, `${route.path}.hook`) ?? chosen
  return limitOf(plugin.guard.forRoute(written, { ...route, besides: ["hook"] }), own)
}

/** Returns the hook that is set in the options. Throws InvalidOptionError with `path` if the hook is invalid. */
export function parseHook(value: unknown, path: string): HookName | undefined {
  if (value === undefined || HOOKS.includes(value as HookName)) return value as HookName | undefined
  const accepted = HOOKS.map((name) => `"${name}"`).join(", ")
  throw new InvalidOptionError([{ path, message: `${inspect(value)} is not a hook`, accepted }])
}

/**
 * Returns a label that identifies a route: "GET,POST /users/:id", with its constraints if it has any. HEAD becomes GET,
 * so that the HEAD route that Fastify adds for a GET route has the same label.
 */
export function routeLabel({ method, url, constraints = {} }: Route): string {
  const methods = [method].flat().map((name) => (name === "HEAD" ? "GET" : name))
  const label = `${[...new Set(methods)].sort().join(",")} ${url}`
  if (Object.keys(constraints).length === 0) return label
  return `${label} ${inspect(constraints, { sorted: true, breakLength: Number.POSITIVE_INFINITY })}`
}

function isHead({ method }: Route): boolean {
  return method === "HEAD"
}

/**
 * Returns the same label for the GET route of a URL and for its HEAD route. The label does not depend on which route
 * is requested first, so that all instances share one counter.
 */
function counterLabel(route: Route): string {
  const answersGet = [route.method].flat().includes("GET")
  return routeLabel(answersGet ? { ...route, method: "GET" } : route)
}
