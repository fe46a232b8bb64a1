import type { RequestFacts } from "@sluice/core"
import type { Request } from "express"
import { routeOf } from "./route.ts"

/**
 * The facts of an Express request. Each is read only when a rule needs it, because Express 5
 * parses the query each time.
 */
export class ExpressFacts implements RequestFacts {
  readonly #req: Request
  readonly #middleware: object | undefined
  /** `middleware` is the mounted limiter that received the request; undefined when the app calls a limiter directly. */
  constructor(req: Request, middleware?: object) {
    this.#req = req
    this.#middleware = middleware
  }
  get method(): string {
    return this.#req.method
  }
  /** Returns the method before an override. The package method-override keeps it there. */
  get originalMethod(): string | undefined {
    return (this.#req as { readonly originalMethod?: string }).originalMethod
  }
  /** Returns the URL with its mount points. Without an app, as on Node's own server, only `url` exists. */
  get url(): string {
    return this.#req.originalUrl ?? this.#req.url
  }
  /** Returns the URL that Express routes, and puts back the mount points that Express has cut off, after any host. */
  get routedUrl(): string {
    const { baseUrl = "", url } = this.#req
    const [host = ""] = /^[a-z]+:\/\/[^/?#]*/i.exec(url) ?? []
    return `${host}${baseUrl}${url.slice(host.length)}`
  }
  get route(): string | undefined {
    return routeOf(this.#req, this.#middleware)
  }
  get headers(): Request["headers"] {
    return this.#req.headers
  }
  get query(): unknown {
    return this.#req.query
  }
  get params(): unknown {
    return this.#req.params
  }
  get body(): unknown {
    return this.#req.body
  }
  /**
   * Returns all cookies. cookie-parser keeps signed cookies separately; a cookie with an
   * invalid signature is false there.
   */
  get cookies(): unknown {
    const { cookies, signedCookies } = this.#req
    if (signedCookies === undefined) return cookies
    const genuine = Object.entries(signedCookies).filter(([, value]) => value !== false)
    return { ...cookies, ...Object.fromEntries(genuine) }
  }
  get remoteAddress(): string | undefined {
    return this.#req.socket?.remoteAddress
  }
  get keepsAddress(): object | undefined {
    return this.#req.socket
  }
  /** Returns undefined on Node's own server, because there is no app and so no setting. */
  get proxySetting(): string | undefined {
    return this.#req.app?.enabled("trust proxy") ? 'Express\' setting "trust proxy"' : undefined
  }
}

/**
 * Returns the facts of a request that the app passes to a limiter directly; undefined if it is not an Express request.
 */
export function factsOf(request: object): RequestFacts | undefined {
  return "baseUrl" in request && "originalUrl" in request ? new ExpressFacts(request as Request) : undefined
}
