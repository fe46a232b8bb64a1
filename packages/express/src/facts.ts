import type { RequestFacts } from "@sluice/core"
import type { Request } from "express"

/** The facts of an Express request, each read when a rule asks for it: Express 5 parses the query each time. */
export class ExpressFacts implements RequestFacts {
  readonly #req: Request
  constructor(req: Request) {
    this.#req = req
  }
  get method(): string {
    return this.#req.method
  }
  get url(): string {
    return this.#req.originalUrl
  }
  get route(): string | undefined {
    return routeOf(this.#req)
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
  get cookies(): unknown {
    return this.#req.cookies
  }
  get remoteAddress(): string | undefined {
    return this.#req.socket?.remoteAddress
  }
  get keepsAddress(): object | undefined {
    return this.#req.socket
  }
}

const mountOfRoute = new WeakMap<object, string>()

/**
 * The pattern of the route that the limiter is mounted on. Express tells no pattern for what is before it, only the
 * path that was asked: for a router at "/:tenant" each tenant's. A route seen under a second mount is not known.
 */
function routeOf({ route, baseUrl }: Request): string | undefined {
  if (typeof route?.path !== "string") return undefined
  // "/API" and "/api" are one mount.
  const mount = baseUrl.toLowerCase()
  const first = mountOfRoute.get(route) ?? mount
  mountOfRoute.set(route, first === mount ? mount : SEVERAL)
  return first === mount ? `${mount}${route.path}` : undefined
}

/** No mount ends in a slash. */
const SEVERAL = "/"

/** The facts of what a limiter is asked about by hand, when it is a request of Express. */
export function factsOf(request: object): RequestFacts | undefined {
  return "baseUrl" in request && "originalUrl" in request ? new ExpressFacts(request as Request) : undefined
}
