import type { HeaderFields, RequestFacts } from "./request.ts"

/** The members that the requests of Express, Fastify and Koa have in common. */
export interface ServerRequest {
  /** The HTTP method. */
  readonly method: string
  /** The original request target. */
  readonly originalUrl: string
  /** Header fields in Node's form. */
  readonly headers: HeaderFields
  /** The parsed query. */
  readonly query: unknown
  /** The route parameters. Absent if the framework has no router. */
  readonly params?: unknown
  /** The parsed body. */
  readonly body?: unknown
  /** The parsed cookies. */
  readonly cookies?: unknown
  /** The signed cookies of cookie-parser. The value of a cookie with an invalid signature is false. */
  readonly signedCookies?: Readonly<Record<string, unknown>>
}

/** The members of Node's own request that Sluice reads. */
export interface NodeRequest {
  /** The connection. Absent in an app that is called without a server. */
  readonly socket?: {
    /** The address of the socket's peer. */
    readonly remoteAddress?: string | undefined
  }
  /** The stream of the request. Only over HTTP/2. */
  readonly stream?: {
    /** Whether the request has no body. */
    readonly endAfterHeaders?: boolean
  }
}

/**
 * The facts of a framework's request on a server of Node. Each fact is read only when a rule needs it. An adapter
 * overrides the facts that its framework provides elsewhere.
 */
export class ServerFacts<Request extends ServerRequest> implements RequestFacts {
  /** The framework's request. */
  declare readonly request: Request
  /** Node's own request, which the framework's request wraps. */
  declare readonly node: NodeRequest

  /** Reads nothing yet. */
  constructor(request: Request, node: NodeRequest) {
    this.request = request
    this.node = node
  }

  get method(): string {
    return this.request.method
  }

  get url(): string {
    return this.request.originalUrl
  }

  get headers(): HeaderFields {
    return this.request.headers
  }

  get query(): unknown {
    return this.request.query
  }

  get params(): unknown {
    return this.request.params
  }

  /**
   * Whether an HTTP/2 request has a body. Without a body, the request's stream ends with the headers (RFC 9113, section
   * 8.1).
   */
  get hasBody(): boolean | undefined {
    const { stream } = this.node
    return stream && !stream.endAfterHeaders
  }

  get body(): unknown {
    return this.request.body
  }

  /**
   * Returns all parsed cookies, without cookies whose signature is invalid. Returns undefined for Koa's `cookies`, which
   * only have a method `get`, so that cookies are read from the header.
   */
  get cookies(): unknown {
    const { cookies, signedCookies } = this.request
    if (typeof (cookies as { readonly get?: unknown } | null | undefined)?.get === "function")
      return undefined
    if (signedCookies === undefined) return cookies
    const genuine = Object.entries(signedCookies).filter(([, value]) => value !== false)
    return { ...(cookies as object | undefined), ...Object.fromEntries(genuine) }
  }

  get remoteAddress(): string | undefined {
    return this.node.socket?.remoteAddress
  }

  get keepsAddress(): object | undefined {
    return this.node.socket
  }
}
