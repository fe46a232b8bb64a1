import type { Request } from "express"

/** An entry in the stack of a router: a route, or something mounted. */
export interface Layer {
  readonly route?: ExpressRoute | undefined
  readonly handle: Stacked
  /** The name of its function. */
  readonly name?: string
  /** Its path, in newer releases of Express 5. */
  readonly rawPath?: unknown
  /** The values of its path parameters in the last match, in older releases. */
  readonly params?: object | undefined
  /** The path parameters themselves, in Express 4, where another request soon overwrites the values. */
  readonly keys?: readonly unknown[]
  /** The expression of its path, in Express 4. */
  readonly regexp?: { readonly source?: string }
}
/** A router, or any other function. */
export interface Stacked {
  readonly stack?: readonly Layer[]
}
interface ExpressRoute {
  readonly path?: unknown
  readonly stack?: readonly Layer[]
  /** The names of its methods in lower case, as members. */
  readonly methods?: object
}
export interface App {
  readonly mountpath?: unknown
  readonly parent?: App | undefined
  readonly _router?: Stacked
  readonly router?: Stacked
}

const below = new WeakMap<object, boolean>()
const used = new WeakMap<object, boolean>()
const mountOf = new WeakMap<object, string>()
/** Marks a route that was seen under several mounts. A mount never ends in a slash. */
const SEVERAL = "/"

/**
 * Returns the pattern of the route that the limiter is mounted on; undefined if it is not known.
 *
 * When a route calls `next`, Express leaves that route on the request. A limiter that is mounted by `use` may find it
 * there, but ignores it.
 *
 * For the mounts before a route, Express only has the requested path, not the pattern. A router at "/:tenant" would
 * give one path per tenant, so the route is not known there. Nor is a route known that was seen under two mounts.
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

/** True if `use` has mounted the middleware. False if a monitoring tool has replaced it with a function of its own. */
function isUsed(middleware: object, app: App | undefined): boolean {
  return remembered(used, middleware, () => {
    for (const { layer } of layersOf(app)) if (layer.handle === middleware) return true
    return false
  })
}

/**
 * True if the route is mounted below a pattern. All requests share the result, because mounting
 * ends before the first one.
 */
function isBelowPattern(route: ExpressRoute & object, app: App | undefined): boolean {
  return remembered(below, route, () => {
    for (const { layer, isBelow } of layersOf(app)) if (isBelow && layer.route === route) return true
    return isMountedAtPattern(app)
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

/**
 * Iterates over all layers of an app, and whether each is below a pattern. Visits a router that
 * contains itself only once.
 */
function* layersOf(app: App | undefined): Generator<{ readonly layer: Layer; readonly isBelow: boolean }> {
  // Express 4 throws when `router` is read.
  const waiting = [{ stack: (app?._router ?? app?.router)?.stack, isBelow: false }]
  const seen = { above: new Set<unknown>(), below: new Set<unknown>() }
  for (const { stack, isBelow } of waiting) {
    const known = isBelow ? seen.below : seen.above
    if (stack === undefined || known.has(stack)) continue
    known.add(stack)
    for (const layer of stack) {
      yield { layer, isBelow }
      waiting.push({ stack: layer.handle.stack, isBelow: isBelow || hasParameters(layer) })
    }
  }
}

function hasParameters({ rawPath = "/", params = {}, keys = [] }: Layer): boolean {
  return isPattern(rawPath) || keys.length > 0 || Object.keys(params).length > 0
}

/** True if a path, or any path of a list, is a pattern. */
function isPattern(path: unknown): boolean {
  return [path].flat().some((each) => typeof each !== "string" || /[:*{(]/.test(each))
}

/** True if the app, or an app around it, is mounted at a pattern. */
function isMountedAtPattern({ mountpath, parent }: App = {}): boolean {
  if (parent === undefined) return false
  return isPattern(mountpath) || isMountedAtPattern(parent)
}
