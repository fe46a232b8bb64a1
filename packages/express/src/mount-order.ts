import type { Request, Response } from "express"
import { type App, type Layer, layersOf, type Stacked } from "./route.ts"

/** Milliseconds in which an app may still add routes, although it already listens. */
const START_MS = 1_000
/** The number of requests that functions after the limiter must answer with 404 before they count as 404 handlers. */
const ENOUGH = 10

/** What an app has before and after a limiter that may be mounted too late. */
interface LatePlace {
  /** The first route before the limiter: "GET /login". */
  readonly route: string
  /** Whether functions after the limiter could answer. */
  readonly hasHandlers: boolean
}

/**
 * Detects a limiter that is mounted after all routes of an app, so that only unmatched requests reach it. One look at
 * the app is enough if no route is before the limiter, or if a route is after it. Otherwise this class reads the status
 * of each response, until a status is not 404 or the limiter is certainly mounted too late.
 */
export class MountOrder {
  /** False once the place of the limiter is known. */
  isWatching = true
  readonly #middleware: object
  readonly #createdMs = performance.now()
  #unmatched = 0

  constructor(middleware: object) {
    this.#middleware = middleware
  }

  /** Watches a request that has reached the limiter. Calls `warn` at most once. */
  watch(req: Request, res: Response, warn: (route: string) => void): void {
    // Express itself answers OPTIONS for a route, after all middleware.
    if (req.method === "OPTIONS") return
    if (this.#place(req) === undefined) {
      this.isWatching = false
      return
    }
    res.once("finish", () => {
      if (!this.isWatching || req.rateLimit?.allowed === false) return
      if (res.statusCode !== 404) {
        this.isWatching = false
        return
      }
      this.#unmatched++
      const place = this.#place(req)
      const isEnough = place?.hasHandlers !== true || this.#unmatched >= ENOUGH
      if (!isEnough || performance.now() - this.#createdMs < START_MS) return
      this.isWatching = false
      if (place !== undefined) warn(place.route)
    })
  }

  /** Returns undefined if the limiter is not certainly after all routes, or if other limiters are before it. */
  #place(req: Request): LatePlace | undefined {
    const app = req.app as unknown as App | undefined
    // The routes of an app around this one may follow.
    if (app === undefined || app.parent !== undefined) return undefined
    const stack = (app._router ?? app.router)?.stack ?? []
    const index = stack.findIndex(({ handle }) => handle === this.#middleware)
    const limiter = stack[index]
    if (limiter === undefined || !isAtRoot(limiter)) return undefined
    const after = stack.slice(index + 1).filter(({ handle }) => !isErrorHandler(handle))
    if (
      after.some((layer) => layer.route !== undefined || layer.handle.stack !== undefined || !isAtRoot(layer))
    )
      return undefined
    const before = [...layersOf({ _router: { stack: stack.slice(0, index) } })].map(({ layer }) => layer)
    if (before.some(isLimited)) return undefined
    const route = before.find((layer) => layer.route !== undefined)?.route
    if (typeof route?.path !== "string") return undefined
    const methods = Object.keys(route.methods ?? {}).map((method) => method.toUpperCase())
    return { route: `${methods.join(",")} ${route.path}`, hasHandlers: after.length > 0 }
  }
}

/** True for a limiter, and for a route that has one. */
function isLimited({ handle, route }: Layer): boolean {
  return "limiter" in handle || route?.stack?.some((layer) => "limiter" in layer.handle) === true
}

/** True if a layer of `use` has no path. Express 4 stores this in the pattern of the layer. */
function isAtRoot({ slash, regexp }: Layer): boolean {
  return slash ?? regexp?.fast_slash ?? false
}

function isErrorHandler(handle: Stacked): boolean {
  return (handle as unknown as { readonly length: number }).length === 4
}
