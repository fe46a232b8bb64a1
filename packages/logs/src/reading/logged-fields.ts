/** The fields that a format logs. */
export interface LoggedFields {
  /** Names of fields, such as "ip", "method" and "header:referer". Header names are in lower case. */
  readonly names: readonly string[]
  /** True if the query is logged, so every `query:NAME` is known. */
  readonly hasQuery: boolean
  /** True if the header with all cookies is logged, so every `cookie:NAME` is known. */
  readonly hasCookies?: boolean | undefined
  /** Names of headers that are hidden. If present, all other headers are logged, and therefore all cookies. */
  readonly hiddenHeaders?: readonly string[] | undefined
}

/**
 * Returns the fields that the lines of a format contain, for `RequestFacts.onlyFields`. The set always contains
 * `service`. Use one set for all records of a format, because consumers cache results per set.
 */
export function fieldSet(logged: LoggedFields): Set<string> {
  return new FieldSet(logged)
}

/**
 * A Set, because the core ignores anything else as `onlyFields`. It has its own `has`, because query parameters
 * cannot be listed.
 */
class FieldSet extends Set<string> {
  readonly #logged: LoggedFields

  constructor(logged: LoggedFields) {
    super()
    this.#logged = logged
    for (const name of ["service", ...logged.names]) this.add(name)
  }

  override has(name: string): boolean {
    if (super.has(name)) return true
    const { hasQuery, hasCookies, hiddenHeaders } = this.#logged
    if (name.startsWith("query:")) return hasQuery
    if (hasCookies === true && name.startsWith("cookie:")) return true
    if (hiddenHeaders === undefined) return false
    if (name.startsWith("cookie:")) return !hiddenHeaders.includes("cookie")
    return name.startsWith("header:") && !hiddenHeaders.includes(name.slice("header:".length))
  }
}
