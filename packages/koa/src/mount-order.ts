import type { Context } from "koa"

/** Milliseconds in which an app may still add routes, although it already listens. */
const START_MS = 1_000
/** The number of requests that functions after the limiter must answer with 404 before they count as 404 handlers. */
const ENOUGH = 10

/** Middleware. That of @koa/router refers to its router, and a limiter to its limiter. */
type KoaMounted = object & { readonly router?: { readonly stack?: readonly KoaLayer[] } }

/** An entry of a router: a route, or middleware of `router.use`, which has no methods. */
interface KoaLayer {
  readonly methods: readonly string[]
  readonly path: unknown
  readonly stack: readonly object[]
}

/** What an app has before and after a limiter that may be mounted too late. */
interface KoaLatePlace {
  /** The first route before the limiter: "GET /login". */
  readonly route: string
  /** Whether functions after the limiter could answer. */
  readonly hasHandlers: boolean
}

/**
 * Detects a limiter that an app mounts after its routers, so that only unmatched requests reach it. Knows the routes of
 * @koa/router. Reads the status of each response, until a status is not 404 or the limiter is certainly mounted too late.
 */
export class KoaMountOrder {
  /** False once the place of the limiter is known. */
  isWatching = true
  readonly #middleware: object
  readonly #createdMs = performance.now()
  #unmatched = 0

  constructor(middleware: object) {
    this.#middleware = middleware
  }

  /** Watches a request that has reached the limiter. Calls `warn` at most once. */
  watch(ctx: Context, warn: (routes: string) => void): void {
    // @koa/router answers OPTIONS for a route after all middleware, with `allowedMethods`.
    if (ctx.method === "OPTIONS") return
    if (this.#place(ctx) === undefined) {
      this.isWatching = false
      return
    }
    ctx.res.once("finish", () => {
      if (!this.isWatching || ctx.state.rateLimit?.allowed === false) return
      if (ctx.res.statusCode !== 404) {
        this.isWatching = false
        return
      }
      this.#unmatched++
      const place = this.#place(ctx)
      const isEnough = place?.hasHandlers !== true || this.#unmatched >= ENOUGH
      if (!isEnough || performance.now() - this.#createdMs < START_MS) return
      this.isWatching = false
      if (place !== undefined) warn(`${place.route} and every other route`)
    })
  }

  /** Returns undefined if the limiter is not certainly after all routes, or if other limiters are before it. */
  #place({ app }: Context): KoaLatePlace | undefined {
    const all = app.middleware as readonly KoaMounted[]
    const index = all.indexOf(this.#middleware)
    const after = all.slice(index + 1)
    if (index === -1 || after.some(({ router }) => router !== undefined)) return undefined
    const before = all.slice(0, index)
    const layers = before.flatMap(({ router }) => router?.stack ?? [])
    const isLimited = ({ stack }: KoaLayer): boolean => stack.some((each) => "limiter" in each)
    if (before.some((each) => "limiter" in each)) return undefined
    if (layers.some((layer) => layer.methods.length === 0 && isLimited(layer))) return undefined
    const found = layers.find((layer) => layer.methods.length > 0 && !isLimited(layer))
    if (found === undefined) return undefined
    const { methods, path } = found
    const method = methods.length > 3 ? "ALL" : methods.filter((name) => name !== "HEAD").join(",")
    return { route: `${method} ${path}`, hasHandlers: after.length > 0 }
  }
}
