import { PERMITS } from "../ground/policy.ts"
import type { RequestFacts } from "../request/request.ts"
import type { ParsedRule } from "../rules/rule.ts"
import type { UnjudgedRule } from "./replay.ts"

/** Requests that have the same fields. */
interface RequestsOfFields {
  readonly onlyFields: ReadonlySet<string>
  requests: number
}

/**
 * Records which rules cannot be applied to the requests of a replay, because the requests lack a field, or because a
 * replay does not know when requests end.
 */
export class UnjudgedRules {
  readonly #rules: readonly ParsedRule[]
  readonly #seen = new Map<ReadonlySet<string>, RequestsOfFields>()
  #latest: RequestsOfFields | undefined
  #requests = 0
  #sawMethod = false
  #sawTarget = false

  constructor(rules: readonly ParsedRule[]) {
    this.#rules = rules
  }

  /**
   * Records the fields that a request lacks. The requests of a log share one set of fields, so a call is nearly
   * always only a comparison.
   */
  see({ onlyFields, method, url, routedUrl, route }: RequestFacts): void {
    this.#requests++
    if (!this.#sawMethod && method !== undefined) this.#sawMethod = true
    if (!this.#sawTarget && (url ?? routedUrl ?? route) !== undefined) this.#sawTarget = true
    if (onlyFields === undefined) return
    if (this.#latest?.onlyFields !== onlyFields) {
      this.#latest = this.#seen.get(onlyFields) ?? { onlyFields, requests: 0 }
      this.#seen.set(onlyFields, this.#latest)
    }
    this.#latest.requests++
  }

  get list(): readonly UnjudgedRule[] {
    const lacking = (field: string): number =>
      [...this.#seen.values()].reduce(
        (sum, { onlyFields, requests }) => sum + (onlyFields.has(field) ? 0 : requests),
        0,
      )
    return this.#rules.flatMap((rule) => {
      const { name, match, counts } = rule
      const all = this.#requests
      if (counts === PERMITS) return all > 0 ? [{ rule: name, field: "concurrent", requests: all }] : []
      const ofFields = fieldsOf(rule).map((field) => ({ rule: name, field, requests: lacking(field) }))
      const ofMatch = [
        ...(match?.methods !== undefined && !this.#sawMethod ? ["method"] : []),
        ...(match?.path !== undefined && !this.#sawTarget ? ["path"] : []),
      ].map((field) => ({ rule: name, field, requests: all }))
      return [...ofFields, ...ofMatch].filter(({ requests }) => requests > 0)
    })
  }
}

/** Returns all fields that a rule reads. A rule for the whole service reads `service`. */
function fieldsOf({ fields, match }: ParsedRule): readonly string[] {
  return [...(fields.length === 0 ? ["service"] : fields), ...Object.keys(match?.fields ?? {})]
}
