import type { RequestFacts } from "@sluice/core"
import { ServerFacts } from "@sluice/core/adapters"
import type { Request } from "express"
import { routeOf } from "./route.ts"

/**
 * The facts of an Express request. Each fact is read only when a rule needs it, because Express 5 parses the query on
 * every read.
 */
export class ExpressFacts extends ServerFacts<Request> {
  declare readonly middleware: object | undefined
  /** `middleware` is the mounted limiter that received the request; undefined when the app calls a limiter directly. */
  constructor(req: Request, middleware?: object) {
    super(req, req)
    this.middleware = middleware
  }
  /** Returns the method before an override. The package method-override stores this method on the request. */
  get originalMethod(): string | undefined {
    return (this.request as { readonly originalMethod?: string }).originalMethod
  }
  /** Returns the URL with its mount points. Without an app, as on Node's own server, only `url` exists. */
  override get url(): string {
    return this.request.originalUrl ?? this.request.url
  }
  /**
   * Returns the URL by which Express routes. Express removes the mount points, so they are inserted again, after the
   * host of an absolute URL.
   */
  get routedUrl(): string {
    const { baseUrl = "", url } = this.request
    const [host = ""] = /^[a-z]+:\/\/[^/?#]*/i.exec(url) ?? []
    return `${host}${baseUrl}${url.slice(host.length)}`
  }
  get route(): string | undefined {
    return routeOf(this.request, this.middleware)
  }
  /** Returns undefined on Node's own server, because a request has no app there, and therefore no setting. */
  get proxySetting(): string | undefined {
    return this.request.app?.enabled("trust proxy") ? 'Express\' setting "trust proxy"' : undefined
  }
}

/**
 * Returns the facts of a request that the app passes to a limiter directly; undefined if it is not an Express request.
 */
export function factsOf(request: object): RequestFacts | undefined {
  return "baseUrl" in request && "originalUrl" in request ? new ExpressFacts(request as Request) : undefined
}
