import type { HeaderFields, RequestFacts } from "./request.ts"

/** The members of the fetch API's `Headers` that Sluice uses. A `Map` of header fields has these members too. */
export interface FetchHeaders {
  /** Returns the value of a header; null or undefined if it is absent. */
  get(name: string): unknown
  /** Calls back for each header. */
  forEach(visit: (value: string, name: string) => void): void
}

/** A request whose `headers` are a `Headers` object: the fetch API's `Request`, or an object with the same members. */
export interface FetchRequest extends Omit<RequestFacts, "headers"> {
  /** The header fields. */
  readonly headers: FetchHeaders
}

/** True if the request's `headers` are a `Headers` object of the fetch API, or of any polyfill of it. */
export function isFetchRequest(request: { readonly headers?: unknown }): request is FetchRequest {
  const { headers } = request
  if (typeof headers !== "object" || headers === null) return false
  const { get, forEach } = headers as Partial<FetchHeaders>
  return typeof get === "function" && typeof forEach === "function"
}

/** The facts of a fetch request. Each fact is read only when a rule needs it. */
export class FetchFacts implements RequestFacts {
  readonly #request: FetchRequest
  #headers: HeaderFields | undefined

  /** Reads nothing yet. */
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

  /** Returns the header fields in Node's form. */
  get headers(): HeaderFields {
    if (this.#headers === undefined) {
      // Create the object without a prototype, because "__proto__" is a valid name of a header field.
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

  /**
   * Returns the request's `cookies`. Returns undefined if they have a `get` method, so that cookies are read from the
   * header.
   */
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
