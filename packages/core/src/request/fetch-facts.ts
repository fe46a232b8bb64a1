import type { HeaderFields, RequestFacts } from "./request.ts"

/** What of the fetch API's `Headers` is used. A `Map` of header fields has the same. */
interface FetchHeaders {
  get(name: string): unknown
  forEach(visit: (value: string, name: string) => void): void
}

/** A request whose header fields are a `Headers`: the fetch API's `Request`, or an object with the same members. */
export interface FetchRequest extends Omit<RequestFacts, "headers"> {
  readonly headers: FetchHeaders
}

/** True if the request's `headers` are a `Headers` of the fetch API, of any copy or polyfill of it. */
export function isFetchRequest(request: { readonly headers?: unknown }): request is FetchRequest {
  const { headers } = request
  if (typeof headers !== "object" || headers === null) return false
  const { get, forEach } = headers as Partial<FetchHeaders>
  return typeof get === "function" && typeof forEach === "function"
}

/** Reads the facts of a fetch request, each when a rule asks for it. */
export class FetchFacts implements RequestFacts {
  readonly #request: FetchRequest
  #headers: HeaderFields | undefined

  constructor(request: FetchRequest) {
    this.#request = request
  }

  get method(): string | undefined {
    return this.#request.method
  }

  get url(): string | undefined {
    return this.#request.url
  }

  get routedUrl(): string | undefined {
    return this.#request.routedUrl
  }

  get route(): string | undefined {
    return this.#request.route
  }

  /** As Node has them. The fetch API joins repeated fields with ", ", as Node does. */
  get headers(): HeaderFields {
    if (this.#headers === undefined) {
      // Without a prototype, because "__proto__" is a valid name of a header field.
      const fields: Record<string, string> = Object.create(null)
      this.#request.headers.forEach((value, name) => {
        fields[name.toLowerCase()] = value
      })
      this.#headers = fields
    }
    return this.#headers
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

  /** Undefined unless it is an object of texts, so that cookies are read from the header. */
  get cookies(): unknown {
    const cookies = this.#request.cookies as { readonly get?: unknown } | null | undefined
    return typeof cookies?.get === "function" ? undefined : cookies
  }

  get onlyFields(): ReadonlySet<string> | undefined {
    return this.#request.onlyFields
  }

  get remoteAddress(): string | undefined {
    const { remoteAddress, socket } = this.#request as FetchRequest & { readonly socket?: RequestFacts }
    return remoteAddress ?? socket?.remoteAddress
  }
}
