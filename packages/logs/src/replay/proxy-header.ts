import type { ClientAddressOptions } from "@sluice/core"
import type { LogRecord } from "../reading/log.ts"

/** Checks that requests in a log have the header in which proxies report the client's address. */
export class ProxyHeader {
  readonly #headers: readonly string[]
  readonly #isTrusted: boolean
  readonly #isSet: boolean
  /** True if every request comes through a proxy, which then sets the header. */
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

  /** Notes whether a request can have the header, and has it. The records of a log share one set of fields. */
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
   * True if proxies are trusted, and a log cannot have the header. Also if a number of proxies is trusted, and no request
   * has the header. All clients behind a proxy then count as one.
   */
  get isMissing(): boolean {
    const isNever = this.#isAlways && this.#latest !== undefined && this.#found === undefined
    return this.#isTrusted && (this.#isLacking || isNever)
  }

  /** The header that a request has, if no option states whether to trust it. */
  get ignored(): string | undefined {
    return this.#isSet ? undefined : this.#found
  }

  get names(): string {
    return this.#headers.join(" or ")
  }
}
