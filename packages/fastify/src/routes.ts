import { createHash } from "node:crypto"
import { inspect, isDeepStrictEqual } from "node:util"
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
type Written = { readonly group?: unknown; readonly hook?: unknown; readonly name?: unknown }
/** With the label of the route that it was made for, and what that has written, as it is and without `group` and `hook`. */
type Counter = {
  readonly guard: Guard<FastifyRequest>
  readonly written: object
  readonly rule: Written
  /** Of its rule, given or made. */
  readonly name: unknown
  readonly label: string
  readonly isHead: boolean
}

/**
 * Makes limits of what routes have written as their `config.rateLimit`, one counter for each route or group. `plugin`
 * decides all other routes; `chosen` is the hook that the app has set. What it yields throws InvalidOptionError.
 */
export function routeLimits(plugin: Limit, chosen?: HookName): (route: Route, written: unknown) => Limit {
  const counters = new Map<string, Counter>()
  return (route, written) => {
    const label = routeLabel(route)
    const at = `route ${label} config.rateLimit`
    if (typeof written !== "object" || written === null) {
      throw wrong(at, `${inspect(written)} is not a rule`, 'false, or { limit: 5, window: "1 minute" }')
    }
    const { group, hook, ...rule }: Written = written
    if (group !== undefined && (typeof group !== "string" || group === "")) {
      throw wrong(`${at}.group`, `${inspect(group)} is not a group`, "a non-empty text")
    }
    const own = parseHook(hook, `${at}.hook`) ?? chosen
    const key = group === undefined ? routeKey(route, written) : `group ${group}`
    const known = counters.get(key)
    if (known !== undefined && !isDeepStrictEqual(known.rule, rule)) {
      const whose = group === undefined ? "the same route" : `group ${inspect(group)}`
      throw wrong(at, `is another rule for ${whose}`, `the rule of route ${known.label}, or another group`)
    }
    const name = rule.name ?? ruleName(group ?? counterLabel(route))
    const guard = known?.guard ?? guardOf(rule, name, at)
    if (known === undefined) counters.set(key, { guard, written, rule, name, label, isHead: isHead(route) })
    // Never before the plugin's own hook: what the shared rules read is there by then.
    return { guard, hook: own ?? (guard.readsArrivalOnly ? plugin.hook : "preHandler") }
  }

  /**
   * The route that Fastify makes for HEAD is the one that it is made of, whatever other methods that has. Of "/" under a
   * prefix Fastify tells of one route, "/users", and of two for HEAD, "/users" and "/users/", which may be asked for first.
   */
  function routeKey(route: Route, written: object): string {
    const key = keyOf(route)
    if (counters.has(key)) return key
    const others = [route.url.replace(/\/$/, ""), `${route.url}/`].map((url) => keyOf({ ...route, url }))
    const isSame = (other: string): boolean => {
      const known = counters.get(other)
      return known?.written === written && (known.isHead || isHead(route))
    }
    return others.find(isSame) ?? key
  }

  function guardOf(rule: Written, name: unknown, at: string): Guard<FastifyRequest> {
    for (const { name: other, label } of counters.values()) {
      if (name !== other) continue
      const accepted = "another name, or the same `group` on both routes, which then share one counter"
      throw wrong(`${at}.name`, `${inspect(name)} is the rule of route ${label}`, accepted)
    }
    try {
      return plugin.guard.forRoute(rule, String(name))
    } catch (error) {
      if (!(error instanceof InvalidOptionError)) throw error
      const { problems } = error
      throw new InvalidOptionError(problems.map(({ path, ...rest }) => ({ path: `${at}.${path}`, ...rest })))
    }
  }
}

/** A hook as it is written in options. Throws InvalidOptionError, which says that it is wrong at `path`. */
export function parseHook(value: unknown, path: string): HookName | undefined {
  if (value === undefined || HOOKS.includes(value as HookName)) return value as HookName | undefined
  throw wrong(path, `${inspect(value)} is not a hook`, HOOKS.map((name) => `"${name}"`).join(", "))
}

function wrong(path: string, message: string, accepted: string): InvalidOptionError {
  return new InvalidOptionError([{ path, message, accepted }])
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

function keyOf(route: Route): string {
  return `route ${counterLabel(route)}`
}

/**
 * The same of all routes that answer GET at one place, of which there is one, and its HEAD; whichever is asked for first, so that
 * all instances have one counter.
 */
function counterLabel(route: Route): string {
  const answersGet = [route.method].flat().some((name) => name === "GET" || name === "HEAD")
  return routeLabel(answersGet ? { ...route, method: "GET" } : route)
}

/** A text as the name of a rule: as it is where it may be one, else what is left of it and 48 bits of its hash. */
export function ruleName(text: string): string {
  const plain = text.replace(/[^ !#-[\]-~]/gu, "?")
  if (plain === text && text.length <= 64) return text
  return `${plain.slice(0, 55)}~${createHash("sha256").update(text).digest("base64url").slice(0, 8)}`
}
