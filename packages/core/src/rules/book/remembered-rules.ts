import type { ServiceRules } from "./service-rules.ts"

/**
 * The rules of names that a book remembers, at most so many. The name that was not asked for longest goes first, and names
 * that have rules after all others: who makes names up must not push them out.
 */
export class RememberedRules {
  readonly #most: number
  /** Of names that have rules. In both, the one that was not asked for longest comes first. */
  readonly #found = new Map<string, ServiceRules>()
  readonly #empty = new Map<string, ServiceRules>()

  constructor(most: number) {
    this.#most = most
  }

  /** Those of names that have rules. */
  get found(): readonly ServiceRules[] {
    return [...this.#found.values()]
  }

  get all(): readonly ServiceRules[] {
    return [...this.#found.values(), ...this.#empty.values()]
  }

  get(service: string): ServiceRules | undefined {
    return this.#found.get(service) ?? this.#empty.get(service)
  }

  /** The same for who asks for it now: it is the last to go. */
  touch(service: string): ServiceRules | undefined {
    for (const names of [this.#found, this.#empty]) {
      const rules = names.get(service)
      if (rules === undefined) continue
      names.delete(service)
      names.set(service, rules)
      return rules
    }
    return undefined
  }

  /** Puts it where it belongs since what is known of the name; another goes when there are too many. */
  keep(rules: ServiceRules): void {
    const { service, known } = rules
    this.delete(service)
    const [mine, other] = known === undefined ? [this.#empty, this.#found] : [this.#found, this.#empty]
    mine.set(service, rules)
    if (mine.size + other.size <= this.#most) return
    // The one that has just come is being asked for: it stays, if only until the next name.
    const from = mine === this.#found && other.size > 0 ? other : mine.size > 1 ? mine : other
    for (const oldest of from.keys()) {
      from.delete(oldest)
      return
    }
  }

  /** A load has ended. A name that went meanwhile comes back only if it has rules. */
  settle(rules: ServiceRules): void {
    const { service, known, isFollowed } = rules
    const present = this.get(service)
    const isForgotten = present === undefined && known !== undefined && !isFollowed
    if (present !== rules && !isForgotten) return
    if (this.#found.has(service) !== (known !== undefined)) this.keep(rules)
  }

  delete(service: string): void {
    this.#found.delete(service)
    this.#empty.delete(service)
  }
}
