import type { RequestFacts } from "@sluice/core"
import type { Request } from "express"
import { routeOf } from "./route.ts"

/** The facts of an Express request, each read when a rule asks for it: Express 5 parses the query each time. */
export class ExpressFacts implements RequestFacts {
  readonly #req: Request
  readonly #middleware: object | undefined
  /** `middleware` is what has met the request; undefined where a limiter is asked by hand. */
  constructor(req: Request, middleware?: object) {
    this.#req = req
    this.#middleware = middleware
  }
  get method(): string {
    return this.#req.method
  }
  /** Outside of an app, such as in front of a handler of Node's own server, nobody has kept another one. */
  get url(): string {
    return this.#req.originalUrl ?? this.#req.url
  }
  /** Mount points are cut off what Express routes, behind the host where there is one. */
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
  /** cookie-parser has those apart that were signed; one whose signature is wrong is false there. */
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
}

/** The facts of what a limiter is asked about by hand, when it is a request of Express. */
export function factsOf(request: object): RequestFacts | undefined {
  return "baseUrl" in request && "originalUrl" in request ? new ExpressFacts(request as Request) : undefined
}
