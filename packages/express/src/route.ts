import type { Request } from "express"
import { type App, type ExpressRoute, isPattern, placesIn } from "./layers.ts"

const below = new WeakMap<object, boolean>()
const used = new WeakMap<object, boolean>()
const mountOf = new WeakMap<object, string>()
/**
 * Marks a route that was reached through several mounts. This value is unambiguous, because a mount never ends in a
 * slash.
 */
const SEVERAL = "/"

/**
 * Returns the pattern of the route on which the limiter is mounted; undefined if the pattern is unknown.
 *
 * When a route calls `next`, Express does not remove that route from the request. A limiter that is mounted by `use`
 * ignores such a route.
 *
 * For the mounts before a route, Express only provides the requested path, not the pattern. A router at "/:tenant"
 * would result in one path per tenant, so its routes are unknown. A route that was reached through two mounts is
 * unknown, too.
 */
export function routeOf(req: Request, middleware: object | undefined): string | undefined {
  const { baseUrl } = req
  const route: (ExpressRoute & object) | undefined = req.route
  if (typeof route?.path !== "string") return undefined
  const app = req.app as unknown as App | undefined
  if (middleware !== undefined && !hasHandle(route, middleware) && isUsed(middleware, app)) return undefined
  if (baseUrl !== "" && isBelowPattern(route, app)) return undefined
  // "/API" and "/api" are the same mount.
  const mount = baseUrl.toLowerCase()
  const first = mountOf.get(route) ?? mount
  mountOf.set(route, first === mount ? mount : SEVERAL)
  return first === mount ? `${mount}${route.path}` : undefined
}

function hasHandle({ stack }: ExpressRoute, middleware: object): boolean {
  return stack?.some(({ handle }) => handle === middleware) === true
}

/**
 * True if `use` has mounted the middleware. False if a monitoring tool has replaced the middleware with its own
 * function.
 */
function isUsed(middleware: object, app: App | undefined): boolean {
  return remembered(used, middleware, () => {
    return [...placesIn(app)].some(({ layer }) => layer.handle === middleware)
  })
}

/**
 * True if the route is mounted below a pattern. All requests share the result, because mounting ends before the first
 * request.
 */
function isBelowPattern(route: ExpressRoute & object, app: App | undefined): boolean {
  return remembered(below, route, () => {
    const isBelow = [...placesIn(app)].some((place) => place.isBelowPattern && place.layer.route === route)
    return isBelow || isMountedAtPattern(app)
  })
}

function remembered(memory: WeakMap<object, boolean>, key: object, find: () => boolean): boolean {
  let known = memory.get(key)
  if (known === undefined) {
    known = find()
    memory.set(key, known)
  }
  return known
}

/** True if the app or an enclosing app is mounted at a pattern. */
function isMountedAtPattern({ mountpath, parent }: App = {}): boolean {
  if (parent === undefined) return false
  return isPattern(mountpath) || isMountedAtPattern(parent)
}
