import type { RequestFacts } from "../request/request.ts"
import type { ParsedRule } from "../rules/parsing/parsed-rule.ts"
import type { UnjudgedRule } from "./replay.ts"

/** Notes which rules cannot be applied to the requests of a replay, because the requests lack a field. */
export class UnjudgedRules {
  readonly #rules: readonly ParsedRule[]
  readonly #found = new Map<string, UnjudgedRule>()
  #latest: ReadonlySet<string> | undefined
  readonly #known = new WeakSet<ReadonlySet<string>>()
  #sawRequest = false
  #sawMethod = false
  #sawTarget = false

  constructor(rules: readonly ParsedRule[]) {
    this.#rules = rules
  }

  /** Notes what a request lacks. The requests of a log share one set of fields, so this is nearly always a comparison. */
  see({ onlyFields, method, url, routedUrl, route }: RequestFacts): void {
    this.#sawRequest = true
    if (!this.#sawMethod && method !== undefined) this.#sawMethod = true
    if (!this.#sawTarget && (url ?? routedUrl ?? route) !== undefined) this.#sawTarget = true
    if (onlyFields === this.#latest || onlyFields === undefined) return
    this.#latest = onlyFields
    if (this.#known.has(onlyFields)) return
    this.#known.add(onlyFields)
    for (const rule of this.#rules) {
      for (const field of fieldsOf(rule)) if (!onlyFields.has(field)) this.#add(rule.name, field)
    }
  }

  get list(): readonly UnjudgedRule[] {
    if (this.#sawRequest) {
      for (const { name, match } of this.#rules) {
        if (match?.methods !== undefined && !this.#sawMethod) this.#add(name, "method")
        if (match?.path !== undefined && !this.#sawTarget) this.#add(name, "path")
      }
    }
    return [...this.#found.values()]
  }

  #add(rule: string, field: string): void {
    this.#found.set(`${rule}\n${field}`, { rule, field })
  }
}

/** Returns all fields that a rule reads. A rule for the whole service reads `service`. */
function fieldsOf({ fields, match }: ParsedRule): readonly string[] {
  return [...(fields.length === 0 ? ["service"] : fields), ...Object.keys(match?.fields ?? {})]
}
