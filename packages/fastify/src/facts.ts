import type { HeaderFields, RequestFacts } from "@sluice/core"
import type { FastifyRequest } from "fastify"

/** The facts of a Fastify request, each read when a rule asks for it. */
export class FastifyFacts implements RequestFacts {
  readonly #request: FastifyRequest
  constructor(request: FastifyRequest) {
    this.#request = request
  }
  get method(): string {
    return this.#request.method
  }
  get url(): string {
    return this.#request.originalUrl
  }
  /** After the app's `rewriteUrl`. */
  get routedUrl(): string | undefined {
    return this.#request.raw.url
  }
  /** Undefined where no route was found. */
  get route(): string | undefined {
    return this.#request.routeOptions.url
  }
  get headers(): HeaderFields {
    return this.#request.headers
  }
  get query(): unknown {
    return this.#request.query
  }
  get params(): unknown {
    return this.#request.params
  }
  get body(): unknown {
    return this.#request.body
  }
  /** Null until @fastify/cookie has run; the core reads the header then. */
  get cookies(): unknown {
    return (this.#request as { cookies?: unknown }).cookies
  }
  get keepsAddress(): object | undefined {
    return this.#request.raw.socket
  }
  /** The peer itself: `request.ip` is whom Fastify's own `trustProxy` believes. */
  get remoteAddress(): string | undefined {
    return this.#request.socket?.remoteAddress
  }
}

/** The facts of what a limiter is asked about by hand, when it is a request of Fastify. */
export function factsOf(request: object): RequestFacts | undefined {
  return "routeOptions" in request && "raw" in request
    ? new FastifyFacts(request as FastifyRequest)
    : undefined
}
