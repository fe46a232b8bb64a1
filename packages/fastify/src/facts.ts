import type { ServerHttp2Stream } from "node:http2"
import type { HeaderFields, RequestFacts } from "@sluice/core"
import type { FastifyRequest } from "fastify"

/** The facts of a Fastify request. Each is read only when a rule needs it. */
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
  /** Returns the URL after the app's `rewriteUrl`. */
  get routedUrl(): string | undefined {
    return this.#request.raw.url
  }
  /** Returns the pattern of the route; undefined if the URL does not match a route. */
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
  /** Whether an HTTP/2 request has a body. Its stream ends with the headers if it has none (RFC 9113, section 8.1). */
  get hasBody(): boolean | undefined {
    const { stream } = this.#request.raw as { readonly stream?: ServerHttp2Stream }
    return stream && !stream.endAfterHeaders
  }
  get body(): unknown {
    return this.#request.body
  }
  /** Returns the parsed cookies. Before @fastify/cookie has run, they are null, and the core reads the header. */
  get cookies(): unknown {
    return (this.#request as { cookies?: unknown }).cookies
  }
  /** Only with this setting, a request has a list of addresses. */
  get proxySetting(): string | undefined {
    return this.#request.ips === undefined ? undefined : 'Fastify\'s setting "trustProxy"'
  }
  get keepsAddress(): object | undefined {
    return this.#request.raw.socket
  }
  /** Returns the socket's peer. `request.ip` is not used, because it depends on Fastify's own `trustProxy`. */
  get remoteAddress(): string | undefined {
    return this.#request.socket?.remoteAddress
  }
}

/**
 * Returns the facts of a request that the app passes to a limiter directly; undefined if it is not a Fastify request.
 */
export function factsOf(request: object): RequestFacts | undefined {
  return "routeOptions" in request && "raw" in request
    ? new FastifyFacts(request as FastifyRequest)
    : undefined
}
