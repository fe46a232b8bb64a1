import type { ClientAddressOptions } from "@sluice/core"

/** Checks that a log has the header in which proxies report the client's address. */
export class ProxyHeader {
  readonly #names: readonly string[]
  readonly #isTrusted: boolean
  readonly #isSet: boolean
  #latest: ReadonlySet<string> | undefined
  /** True if proxies are trusted, and a log does not have the header: then all clients behind a proxy count as one. */
  isMissing = false
  /** True if a log has the header, and the options do not say whether to trust it. */
  isIgnored = false

  constructor({ trustedProxies, clientIpHeader }: ClientAddressOptions) {
    this.#names = [clientIpHeader?.toLowerCase() ?? ["x-forwarded-for", "forwarded"]].flat()
    this.#isSet = trustedProxies !== undefined
    this.#isTrusted =
      typeof trustedProxies === "number" ? trustedProxies > 0 : (trustedProxies ?? []).length > 0
  }

  /** Notes the fields that a log has. The records of a log share one set. */
  see(onlyFields: ReadonlySet<string> | undefined): void {
    if (onlyFields === this.#latest || onlyFields === undefined) return
    this.#latest = onlyFields
    const isLogged = this.#names.some((name) => onlyFields.has(`header:${name}`))
    if (this.#isTrusted && !isLogged) this.isMissing = true
    if (!this.#isSet && isLogged) this.isIgnored = true
  }

  get names(): string {
    return this.#names.join(" or ")
  }
}
