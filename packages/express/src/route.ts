import type { Request } from "express"

/** What is on the stack of a router: a route, or what is mounted. */
interface Layer {
  readonly route?: ExpressRoute | undefined
  readonly handle: Stacked
  /** Its path, of newer releases of Express 5. */
  readonly rawPath?: unknown
  /** The values of its path's parameters when it matched last, of older ones. */
  readonly params?: object | undefined
  /** Those parameters, of Express 4, where the values are soon another request's. */
  readonly keys?: readonly unknown[]
}
/** A router, or any other function. */
interface Stacked {
  readonly stack?: readonly Layer[]
}
interface ExpressRoute {
  readonly path?: unknown
  readonly stack?: readonly Layer[]
}
interface App {
  readonly mountpath?: unknown
  readonly parent?: App | undefined
  readonly _router?: Stacked
  readonly router?: Stacked
}

const below = new WeakMap<object, boolean>()
const used = new WeakMap<object, boolean>()
const mountOf = new WeakMap<object, string>()
/** No mount ends in a slash. */
const SEVERAL = "/"

/**
 * The pattern of the route that the limiter is mounted on. Express leaves a request's route on it when that has called `next`, so it
 * is another's where `middleware` is not on it, but mounted by `use`. Of what is before the route it tells no pattern, only the path that
 * was asked: for a router at "/:tenant" each tenant's, so there the route is not known, nor is one that is seen under a second mount.
 */
export function routeOf(req: Request, middleware: object | undefined): string | undefined {
  const { baseUrl } = req
  const route: (ExpressRoute & object) | undefined = req.route
  if (typeof route?.path !== "string") return undefined
  const app = req.app as unknown as App | undefined
  if (middleware !== undefined && !hasHandle(route, middleware) && isUsed(middleware, app)) return undefined
  if (baseUrl !== "" && isBelowPattern(route, app)) return undefined
  // "/API" and "/api" are one mount.
  const mount = baseUrl.toLowerCase()
  const first = mountOf.get(route) ?? mount
  mountOf.set(route, first === mount ? mount : SEVERAL)
  return first === mount ? `${mount}${route.path}` : undefined
}

function hasHandle({ stack }: ExpressRoute, middleware: object): boolean {
  return stack?.some(({ handle }) => handle === middleware) === true
}

/** Whether it is found where `use` puts it. What watches an app puts functions of its own in the place of others: then it is not. */
function isUsed(middleware: object, app: App | undefined): boolean {
  return remembered(used, middleware, () => {
    for (const { layer } of layersOf(app)) if (layer.handle === middleware) return true
    return false
  })
}

/** The same for all requests: what is mounted, and at what, is there before the first. */
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

/** Everything that an app has, and whether it is below a pattern; of a router that is mounted in itself, once. */
function* layersOf(app: App | undefined): Generator<{ readonly layer: Layer; readonly isBelow: boolean }> {
  // Express 4 throws for `router`.
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

/** Of a path, or a list of them. */
function isPattern(path: unknown): boolean {
  return [path].flat().some((each) => typeof each !== "string" || /[:*{(]/.test(each))
}

/** Of an app that is mounted in another one, at a path or a list of them. */
function isMountedAtPattern({ mountpath, parent }: App = {}): boolean {
  if (parent === undefined) return false
  return isPattern(mountpath) || isMountedAtPattern(parent)
}
