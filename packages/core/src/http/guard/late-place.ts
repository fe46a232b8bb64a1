/** A function, a router or a route of an app, as its adapter reads it. */
export interface MountedLayer {
  /** The function that runs. Absent for a route, and for a function that is inside another one. */
  readonly handle?: object
  /**
   * The path with all mounts around it, up to the first segment with a parameter, in lower case and without a slash at
   * its end. So "" stands for the root, and for a path that is not known.
   */
  readonly path: string
  /** Whether a limiter is here: the function itself, or one of the route's functions. */
  readonly isLimited: boolean
  /** Whether it may have routes, as a router has, or is only for some paths. False for a function of all paths. */
  readonly isRouting: boolean
  /** The route, if its path is a string. */
  readonly route?: {
    /** The names of its methods. More than three stand for all methods. */
    readonly methods: readonly string[]
    /** The path as the app has written it, with the mounts around it. */
    readonly pattern: string
  }
}

/** The routes and other layers of an app before and after a limiter that may be mounted too late. */
export interface LatePlace {
  /** The routes before the limiter: "GET /login and every other route". */
  readonly routes: string
  /** Whether functions after the limiter could respond. */
  readonly hasHandlers: boolean
}

/**
 * Returns the place of a limiter that is after all routes of its path. Undefined if its place is not certain, or if
 * other limiters are before it. `layers` are in the order in which they run, without error handlers. A router is before
 * its own layers.
 */
export function latePlace(layers: readonly MountedLayer[], limiter: object): LatePlace | undefined {
  const index = layers.findIndex(({ handle }) => handle === limiter)
  const path = layers[index]?.path
  if (path === undefined) return undefined
  const isRelated = ({ path: other }: MountedLayer): boolean => isBelow(path, other) || isBelow(other, path)
  const after = layers.slice(index + 1).filter(isRelated)
  if (after.some(({ isRouting }) => isRouting)) return undefined
  const before = layers.slice(0, index).filter(isRelated)
  if (before.some(({ isLimited, route }) => isLimited && route === undefined)) return undefined
  const first = before.find((layer) => !layer.isLimited && layer.route && isBelow(layer.path, path))
  if (first?.route === undefined) return undefined
  const { methods, pattern } = first.route
  const method = methods.length > 3 ? "ALL" : methods.join(",").toUpperCase()
  const others = path === "" ? "" : ` below ${path}`
  return { routes: `${method} ${pattern} and every other route${others}`, hasHandlers: after.length > 0 }
}

/** True if the paths are the same, or the first one is below the second one. */
function isBelow(path: string, above: string): boolean {
  return `${path}/`.startsWith(`${above}/`)
}
