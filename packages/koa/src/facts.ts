import type { RequestFacts } from "@sluice/core"
import type { Context } from "koa"

/** What @koa/router leaves on a context: the pattern of what runs, and all that matched the path. */
interface Matched {
  readonly _matchedRoute?: unknown
  readonly matched?: readonly { readonly path: unknown; readonly methods: readonly string[] }[]
}

/** The facts of a Koa context, each read when a rule asks for it. */
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
   * What koa-mount has cut off is no rewriting: it leaves that in `mountPath`, of several mounts the last, and also when it is done. So what
   * is rewritten before a mount is not seen inside.
   */
  get routedUrl(): string {
    const { originalUrl, url, mountPath } = this.#ctx
    if (typeof mountPath !== "string") return url
    const isLeft = (rest: string): boolean =>
      originalUrl.endsWith(rest) && originalUrl.slice(0, originalUrl.length - rest.length).endsWith(mountPath)
    // Of what is the mount itself it leaves a slash, be there one or not.
    return isLeft(url) || isLeft(url.replace(/^\/(?=\?|$)/, "")) ? originalUrl : url
  }
  /** An expression is none to the core, which takes nothing but a text. */
  get route(): string | undefined {
    const { _matchedRoute: route, matched }: Matched = this.#ctx as Matched
    // What is mounted by `router.use` has a pattern as well, of no route: it is for no method.
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
  get body(): unknown {
    return (this.#ctx.request as { body?: unknown }).body
  }
  get remoteAddress(): string | undefined {
    return this.#ctx.req.socket?.remoteAddress
  }
  get keepsAddress(): object | undefined {
    return this.#ctx.req.socket
  }
}

/** The facts of what a limiter is asked about by hand, when it is a context of Koa. */
export function factsOf(request: object): RequestFacts | undefined {
  return "req" in request && "originalUrl" in request ? new KoaFacts(request as Context) : undefined
}
