import type { Request } from "express"

/** What is on the stack of a router: a route, or what is mounted. */
interface Layer {
  readonly route?: Route | undefined
  readonly handle?: { readonly stack?: readonly Layer[] }
  /** Its path, of newer releases of Express 5. */
  readonly rawPath?: unknown
  /** The values of its path's parameters when it matched last, of older ones. */
  readonly params?: object | undefined
  /** Those parameters, of Express 4. */
  readonly keys?: readonly unknown[]
}
interface Route {
  readonly path?: unknown
  readonly stack?: readonly Layer[]
}
interface App {
  readonly mountpath?: unknown
  readonly parent?: App | undefined
  readonly _router?: Layer["handle"]
  readonly router?: Layer["handle"]
}

const belowPattern = new WeakMap<object, boolean>()
const mountOf = new WeakMap<object, string>()
/** No mount ends in a slash. */
const SEVERAL = "/"

/**
 * The pattern of the route that `middleware` is mounted on. Express leaves a request's route on it when that has called `next`,
 * so it is another's unless it has the middleware. Of what is before the route it tells no pattern, only the path that was asked: for
 * a router at "/:tenant" each tenant's, so there the route is not known, nor is one that is seen under a second mount.
 */
export function routeOf(req: Request, middleware: unknown): string | undefined {
  const { baseUrl } = req
  const route: (Route & object) | undefined = req.route
  if (typeof route?.path !== "string") return undefined
  const isOn = middleware === undefined || route.stack?.some(({ handle }) => handle === middleware) === true
  if (!isOn || (baseUrl !== "" && isBelowPattern(route, req.app as App))) return undefined
  // "/API" and "/api" are one mount.
  const mount = baseUrl.toLowerCase()
  const first = mountOf.get(route) ?? mount
  mountOf.set(route, first === mount ? mount : SEVERAL)
  return first === mount ? `${mount}${route.path}` : undefined
}

/** The same for all requests: what is mounted, and at what, is there before the first. */
function isBelowPattern(route: Route & object, app: App): boolean {
  let known = belowPattern.get(route)
  if (known === undefined) {
    // Express 4 throws for `router`.
    const { stack = [] } = app._router ?? app.router ?? {}
    known = isIn(stack, route, false) || isMountedAtPattern(app)
    belowPattern.set(route, known)
  }
  return known
}

function isIn(stack: readonly Layer[], route: Route, isBelow: boolean): boolean {
  return stack.some((layer) => {
    if (layer.route === route) return isBelow
    return isIn(layer.handle?.stack ?? [], route, isBelow || hasParameters(layer))
  })
}

function hasParameters({ rawPath = "/", params = {}, keys = [] }: Layer): boolean {
  return isPattern(rawPath) || keys.length > 0 || Object.keys(params).length > 0
}

/** Of a path, or a list of them. */
function isPattern(path: unknown): boolean {
  return [path].flat().some((each) => typeof each !== "string" || /[:*{(]/.test(each))
}

/** Of an app that is mounted in another one, at a path or a list of them. */
function isMountedAtPattern({ mountpath, parent }: App): boolean {
  if (parent === undefined) return false
  return isPattern(mountpath) || isMountedAtPattern(parent)
}
