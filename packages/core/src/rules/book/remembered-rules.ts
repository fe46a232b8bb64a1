import type { ServiceRules } from "./service-rules.ts"

/**
 * The rules of the names that a book remembers, up to a maximum. It evicts the least recently used name. Names without
 * rules go first, so that made-up names cannot evict real ones.
 */
export class RememberedRules {
  readonly #most: number
  /** Names that have rules; `#empty` has the others. In both maps, the least recently used name comes first. */
  readonly #found = new Map<string, ServiceRules>()
  readonly #empty = new Map<string, ServiceRules>()

  constructor(most: number) {
    this.#most = most
  }

  /** The rules of names that have rules. */
  get found(): readonly ServiceRules[] {
    return [...this.#found.values()]
  }

  get all(): readonly ServiceRules[] {
    return [...this.#found.values(), ...this.#empty.values()]
  }

  get(service: string): ServiceRules | undefined {
    return this.#found.get(service) ?? this.#empty.get(service)
  }

  /** Returns the rules of a name, and marks the name as the most recently used. */
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

  /** Moves the rules to the map that fits what is known of the name. Evicts another name if there are too many. */
  keep(rules: ServiceRules): void {
    const { service, known } = rules
    this.delete(service)
    const [mine, other] = known === undefined ? [this.#empty, this.#found] : [this.#found, this.#empty]
    mine.set(service, rules)
    if (mine.size + other.size <= this.#most) return
    // Keep the new name, because it is being asked for. It stays at least until the next name comes.
    const from = mine === this.#found && other.size > 0 ? other : mine.size > 1 ? mine : other
    for (const oldest of from.keys()) {
      from.delete(oldest)
      return
    }
  }

  /** Updates the maps after a load. A name that was evicted during the load comes back only if it has rules. */
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
