import type { Check } from "../store.ts"

/** A request on its way to Redis: its checks, and the key of each. */
export interface Asked {
  readonly checks: readonly Check[]
  readonly keys: readonly string[]
  /** Whether a request has other checks beside these, which are decided at another time. */
  readonly isPart?: boolean
}

/** A whole request, whose keys are named when they are asked for: one that is merged with another has no need of them. */
export class WholeRequest implements Asked {
  readonly checks: readonly Check[]
  readonly #keyOf: (check: Check) => string
  #keys: readonly string[] | undefined

  constructor(checks: readonly Check[], keyOf: (check: Check) => string) {
    this.checks = checks
    this.#keyOf = keyOf
  }

  get keys(): readonly string[] {
    // Stryker disable next-line AssignmentOperator: each time they are named anew
    this.#keys ??= this.checks.map(this.#keyOf)
    return this.#keys
  }
}
