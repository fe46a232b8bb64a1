/** A function, a router or a route of an app, as its adapter reads it. */
export interface MountedLayer {
  /** The function that the app mounted. Absent for a route, and for a function inside another function. */
  readonly handle?: object
  /**
   * The path, including the paths of the routers around it, up to the first segment with a parameter. The path is in
   * lower case and has no trailing slash. "" is the root or an unknown path.
   */
  readonly path: string
  /** Whether this function, or one of the route's functions, is a limiter. */
  readonly isLimited: boolean
  /**
   * True if this layer may contain routes, as a router does, or runs only for some paths. False for a function that
   * runs for all paths.
   */
  readonly isRouting: boolean
  /** The route, if its path is a string. */
  readonly route?: {
    /** The HTTP methods of the route. More than three count as all methods. */
    readonly methods: readonly string[]
    /** The path as written in the app, including the paths of the routers around it. */
    readonly pattern: string
  }
}

/** The routes and other layers of an app before and after a limiter that may be mounted too late. */
export interface LatePlace {
  /** The routes before the limiter, for example "GET /login and every other route". */
  readonly routes: string
  /** Whether functions after the limiter could respond. */
  readonly hasHandlers: boolean
}

/**
 * Returns the place of a limiter that is mounted after all routes of its path. Undefined if the place is uncertain,
 * or if another limiter is mounted before this limiter. `layers` is in the order in which the layers run, without
 * error handlers. A router precedes its own layers.
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

/** True if `path` is the same as `above` or below it. */
function isBelow(path: string, above: string): boolean {
  return `${path}/`.startsWith(`${above}/`)
}
