import type { MountedLayer } from "@sluice/core/adapters"
import type { Context } from "koa"

/** Middleware. The middleware of @koa/router refers to its router, and the middleware of Sluice to its limiter. */
type KoaMounted = object & { readonly router?: { readonly stack?: readonly KoaLayer[] } }

/** An entry of a router: a route, or middleware that was added by `router.use`. Such middleware has no methods. */
interface KoaLayer {
  readonly methods: readonly string[]
  readonly path: unknown
  readonly stack: readonly object[]
}

/** Returns the middleware of an app, and the layers of its routers by @koa/router. */
export function layersOf(app: Context["app"]): MountedLayer[] {
  return (app.middleware as readonly KoaMounted[]).flatMap((handle) => {
    const { router } = handle
    const isLimited = "limiter" in handle
    return [
      { handle, path: "", isLimited, isRouting: router !== undefined },
      ...(router?.stack ?? []).map(layerOf),
    ]
  })
}

function layerOf({ methods, path, stack }: KoaLayer): MountedLayer {
  const layer = { path: "", isLimited: stack.some((each) => "limiter" in each), isRouting: true }
  if (methods.length === 0) return layer
  const names = methods.length > 3 ? methods : methods.filter((name) => name !== "HEAD")
  return { ...layer, route: { methods: names, pattern: `${path}` } }
}
