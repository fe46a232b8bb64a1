import { inspect } from "node:util"
import { type Guard, InvalidOptionError } from "@sluice/core"
import type { FastifyRequest, RouteOptions } from "fastify"

/** A hook of Fastify's in which a request can be decided; they run in this order. */
export type HookName = "onRequest" | "preParsing" | "preValidation" | "preHandler"

/** All of them, in the order in which they run. */
export const HOOKS: readonly HookName[] = ["onRequest", "preParsing", "preValidation", "preHandler"]

/** Who decides a request, and when. */
export interface Limit {
  readonly guard: Guard<FastifyRequest>
  readonly hook: HookName
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
    // Never before the plugin's own hook: what the shared rules read is there by then.
    return { guard, hook: hook ?? (guard.readsArrivalOnly ? plugin.hook : "preHandler") }
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
