import type { LatePlace } from "@sluice/core"
import type { Context } from "koa"

/** Middleware. That of @koa/router refers to its router, and a limiter to its limiter. */
type KoaMounted = object & { readonly router?: { readonly stack?: readonly KoaLayer[] } }

/** An entry of a router: a route, or middleware of `router.use`, which has no methods. */
interface KoaLayer {
  readonly methods: readonly string[]
  readonly path: unknown
  readonly stack: readonly object[]
}

/**
 * Returns the place of a limiter that an app mounts after its routers. Undefined if that is not certain, or if other
 * limiters are before it. Knows the routes of @koa/router.
 */
export function latePlace(app: Context["app"], middleware: object): LatePlace | undefined {
  const all = app.middleware as readonly KoaMounted[]
  const index = all.indexOf(middleware)
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
  return { routes: `${method} ${path} and every other route`, hasHandlers: after.length > 0 }
}
