import type { RequestFacts } from "@sluice/core"
import { ServerFacts } from "@sluice/core/adapters"
import type { Context } from "koa"

/**
 * The members that @koa/router sets on a context: the pattern of the route, and all layers whose patterns match the
 * path.
 */
interface Matched {
  readonly _matchedRoute?: unknown
  readonly matched?: readonly { readonly path: unknown; readonly methods: readonly string[] }[]
}

/** The facts of a Koa context. Each fact is read only when a rule needs it. */
export class KoaFacts extends ServerFacts<Context> {
  /**
   * Returns the URL by which the app routes. A prefix that koa-mount has removed is not a rewrite. koa-mount stores
   * only the prefix of the latest mount in `mountPath`, even after the mount has ended. Therefore, a rewrite before a
   * mount is not recognized inside the mount.
   */
  get routedUrl(): string {
    const { originalUrl, url, mountPath } = this.request
    if (typeof mountPath !== "string") return url
    const isLeft = (rest: string): boolean =>
      originalUrl.endsWith(rest) && originalUrl.slice(0, originalUrl.length - rest.length).endsWith(mountPath)
    // For the mount point itself, koa-mount leaves "/", even if the URL does not end in a slash.
    return isLeft(url) || isLeft(url.replace(/^\/(?=\?|$)/, "")) ? originalUrl : url
  }
  /** Returns the pattern of the route. The pattern may be a regular expression, which the core ignores. */
  get route(): string | undefined {
    const { _matchedRoute: route, matched }: Matched = this.request as Matched
    // Middleware mounted by `router.use` also has a pattern. Such middleware is not a route, because its list of
    // methods is empty.
    const isRoute = matched?.some(({ path, methods }) => path === route && methods.length > 0) ?? true
    return isRoute ? (route as string | undefined) : undefined
  }
  override get body(): unknown {
    return (this.request.request as { body?: unknown }).body
  }
  get proxySetting(): string | undefined {
    return this.request.app.proxy ? 'Koa\'s setting "proxy"' : undefined
  }
}

/** Returns the facts of a request that the app passes to a limiter directly; undefined if it is not a Koa context. */
export function factsOf(request: object): RequestFacts | undefined {
  const ctx = request as Context
  return "req" in ctx && "originalUrl" in ctx ? new KoaFacts(ctx, ctx.req) : undefined
}
