import { inspect } from "node:util"
import { type DecisionStep, type Guard, InvalidOptionError } from "@sluice/core"
import type { FastifyRequest, RouteOptions } from "fastify"

/** A hook of Fastify at which requests can be decided, or the moment before the handler: after every `preHandler` of the route. */
export type HookName = "onRequest" | "preParsing" | "preValidation" | "preHandler" | "handler"

/** All of them, in the order in which they run. */
export const HOOKS: readonly HookName[] = [
  "onRequest",
  "preParsing",
  "preValidation",
  "preHandler",
  "handler",
]

/** The hook at which what a step needs is there. */
const HOOK_OF: Readonly<Record<DecisionStep, HookName>> = {
  arrival: "onRequest",
  body: "preHandler",
  app: "handler",
}

/** What decides a request, and when. */
export interface Limit {
  readonly guard: Guard<FastifyRequest>
  /** The hooks at which it decides, and the step that is decided there; undefined for all steps at once. */
  readonly plan: ReadonlyMap<HookName, DecisionStep | undefined>
}

/** Makes a limit that decides each rule as soon as what it reads is there, or all rules at one hook. */
export function limitOf(guard: Guard<FastifyRequest>, hook: HookName | undefined): Limit {
  if (hook !== undefined) return { guard, plan: new Map([[hook, undefined]]) }
  const { steps } = guard
  const isOne = steps.length === 1
  return { guard, plan: new Map(steps.map((step) => [HOOK_OF[step], isOne ? undefined : step])) }
}

/** Returns the hooks of Fastify that a limit needs. What runs before the handler is added to a route in `onRequest`. */
export function hooksOf({ plan }: Limit): readonly HookName[] {
  return HOOKS.slice(0, -1).filter((name) => plan.has(name) || (name === "onRequest" && plan.has("handler")))
}

type Route = Pick<RouteOptions, "method" | "url" | "constraints">

/**
 * Makes limits of what routes have written as their `config.rateLimit`, one counter for each route or group. `plugin`
 * decides all other routes; `chosen` is the hook that the app has set. What it yields throws InvalidOptionError.
 */
export function routeLimits(plugin: Limit, chosen?: HookName): (route: Route, written: unknown) => Limit {
  const seen = new Map<string, { readonly written: unknown; readonly isHead: boolean }>()
  return (route, written) => {
    const label = routeLabel(route)
    const path = `route ${label} config.rateLimit`
    const hook = parseHook((written as { readonly hook?: unknown } | null)?.hook, `${path}.hook`) ?? chosen
    const counter = counterOf(route, written)
    const guard = plugin.guard.forRoute(written, { label, counter, path, besides: ["hook"] })
    if (!seen.has(counter)) seen.set(counter, { written, isHead: isHead(route) })
    return limitOf(guard, hook)
  }

  /**
   * The route that Fastify makes for HEAD is the one that it is made of, whatever other methods that has. Of "/" under a
   * prefix Fastify tells of one route, "/users", and of two for HEAD, "/users" and "/users/", which may be asked for first.
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

/** A hook as it is written in options. Throws InvalidOptionError, which says that it is wrong at `path`. */
export function parseHook(value: unknown, path: string): HookName | undefined {
  if (value === undefined || HOOKS.includes(value as HookName)) return value as HookName | undefined
  const accepted = HOOKS.map((name) => `"${name}"`).join(", ")
  throw new InvalidOptionError([{ path, message: `${inspect(value)} is not a hook`, accepted }])
}

/**
 * What tells a route from all others: "GET,POST /users/:id", with its constraints if it has any. HEAD is GET, so that
 * the HEAD route that Fastify makes of a GET route is the same route here.
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
 * The same of all routes that answer GET at one place, of which there is one, and its HEAD; whichever is asked for first, so that
 * all instances have one counter.
 */
function counterLabel(route: Route): string {
  const answersGet = [route.method].flat().includes("GET")
  return routeLabel(answersGet ? { ...route, method: "GET" } : route)
}
