import type { ClientAddressOptions } from "@sluice/core/adapters"
import type { LogRecord } from "../reading/log.ts"

/** Checks whether requests in a log contain the header in which proxies report the client's address. */
export class ProxyHeader {
  readonly #headers: readonly string[]
  readonly #isTrusted: boolean
  readonly #isSet: boolean
  /** True if every request comes through a proxy, and the proxy sets the header. */
  readonly #isAlways: boolean
  #latest: ReadonlySet<string> | undefined
  #isLogged = false
  #isLacking = false
  #found: string | undefined

  constructor({ trustedProxies, clientIpHeader }: ClientAddressOptions) {
    this.#headers = [clientIpHeader?.toLowerCase() ?? ["x-forwarded-for", "forwarded"]].flat()
    this.#isSet = trustedProxies !== undefined
    this.#isAlways = typeof trustedProxies === "number" && trustedProxies > 0
    this.#isTrusted = this.#isAlways || (Array.isArray(trustedProxies) && trustedProxies.length > 0)
  }

  /**
   * Records whether a request can contain the header, and whether it contains the header. The records of a log share
   * one set of fields.
   */
  see({ onlyFields, headers }: LogRecord): void {
    if (onlyFields !== this.#latest && onlyFields !== undefined) {
      this.#latest = onlyFields
      this.#isLogged = this.#headers.some((name) => onlyFields.has(`header:${name}`))
      if (!this.#isLogged) this.#isLacking = true
    }
    if (!this.#isLogged || this.#found !== undefined || headers === undefined) return
    this.#found = this.#headers.find((name) => headers[name] !== undefined)
  }

  /**
   * True if proxies are trusted, and a log cannot contain the header. Also true if a number of proxies is trusted,
   * and no request contains the header. All clients behind a proxy then count as one.
   */
  get isMissing(): boolean {
    const isNever = this.#isAlways && this.#latest !== undefined && this.#found === undefined
    return this.#isTrusted && (this.#isLacking || isNever)
  }

  /** The proxy header that requests contain although no option states whether to trust it. */
  get ignored(): string | undefined {
    return this.#isSet ? undefined : this.#found
  }

  get names(): string {
    return this.#headers.join(" or ")
  }
}
