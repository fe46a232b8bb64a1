import type { ServerHttp2Stream } from "node:http2"
import type { RequestFacts } from "@sluice/core"
import type { Context } from "koa"

/** The members that @koa/router sets on a context: the pattern that runs, and all layers that matched the path. */
interface Matched {
  readonly _matchedRoute?: unknown
  readonly matched?: readonly { readonly path: unknown; readonly methods: readonly string[] }[]
}

/** The facts of a Koa context. Each is read only when a rule needs it. */
export class KoaFacts implements RequestFacts {
  readonly #ctx: Context
  constructor(ctx: Context) {
    this.#ctx = ctx
  }
  get method(): string {
    return this.#ctx.method
  }
  get url(): string {
    return this.#ctx.originalUrl
  }
  /**
   * Returns the URL that the app routes by. A prefix that koa-mount has cut off is not a rewrite. koa-mount keeps
   * only the prefix of the last mount, in `mountPath`, even after the mount is done. Therefore a rewrite before a
   * mount is not recognized inside it.
   */
  get routedUrl(): string {
    const { originalUrl, url, mountPath } = this.#ctx
    if (typeof mountPath !== "string") return url
    const isLeft = (rest: string): boolean =>
      originalUrl.endsWith(rest) && originalUrl.slice(0, originalUrl.length - rest.length).endsWith(mountPath)
    // For the mount point itself, koa-mount leaves "/", even if the URL does not end in a slash.
    return isLeft(url) || isLeft(url.replace(/^\/(?=\?|$)/, "")) ? originalUrl : url
  }
  /** Returns the pattern of the route. It may be a regular expression, which the core ignores. */
  get route(): string | undefined {
    const { _matchedRoute: route, matched }: Matched = this.#ctx as Matched
    // Middleware mounted by `router.use` also has a pattern. It is not a route, because its list of methods is empty.
    const isRoute = matched?.some(({ path, methods }) => path === route && methods.length > 0) ?? true
    return isRoute ? (route as string | undefined) : undefined
  }
  get headers(): Context["headers"] {
    return this.#ctx.headers
  }
  get query(): unknown {
    return this.#ctx.query
  }
  get params(): unknown {
    return this.#ctx.params
  }
  /** Whether an HTTP/2 request has a body. Its stream ends with the headers if it has none (RFC 9113, section 8.1). */
  get hasBody(): boolean | undefined {
    const { stream } = this.#ctx.req as { readonly stream?: ServerHttp2Stream }
    return stream && !stream.endAfterHeaders
  }
  get body(): unknown {
    return (this.#ctx.request as { body?: unknown }).body
  }
  get remoteAddress(): string | undefined {
    return this.#ctx.req.socket?.remoteAddress
  }
  get keepsAddress(): object | undefined {
    return this.#ctx.req.socket
  }
  get proxySetting(): string | undefined {
    return this.#ctx.app.proxy ? 'Koa\'s setting "proxy"' : undefined
  }
}

/** Returns the facts of a request that the app passes to a limiter directly; undefined if it is not a Koa context. */
export function factsOf(request: object): RequestFacts | undefined {
  return "req" in request && "originalUrl" in request ? new KoaFacts(request as Context) : undefined
}
