import type { LoadFailure } from "./rule-snapshot.ts"
import type { Page } from "./service-rules.ts"

/** What is known of a name that was asked for and is not followed. */
export interface Lookup {
  readonly page: Page
  /** When it was asked for first. */
  readonly askedAtMs: number
  /** When the latest load that succeeded began; undefined until one has since what is stored may have changed. */
  loadedAtMs: number | undefined
  /** When it may be asked for again. */
  dueMs: number
  /** The latest load, while it is under way. */
  loading: Promise<void> | undefined
  /** The number of the latest load that began, and of the latest that has ended; from 1. */
  begun: number
  settled: number
  /** The first load that counts: those before it may have read what has changed since. */
  countsFrom: number
  /** Why the latest load failed, and how many have in a row. */
  error: LoadFailure | undefined
  failures: number
  /** Why nothing of its document can be used, as it was told. */
  said: string | undefined
  /** Somebody follows the name now. */
  isHandedOver: boolean
}

/**
 * The names that a book remembers, no more than so many. The one that was not asked for longest goes first, and names
 * that have rules after all others: who makes names up must not push them out.
 */
export class RememberedLookups {
  readonly #most: number
  /** Names that have rules. In both, the one that was not asked for longest comes first. */
  readonly #found = new Map<string, Lookup>()
  readonly #empty = new Map<string, Lookup>()

  constructor(most: number) {
    this.#most = most
  }

  /** Those of names that have rules. */
  get found(): readonly Lookup[] {
    return [...this.#found.values()]
  }

  get all(): readonly Lookup[] {
    return [...this.#found.values(), ...this.#empty.values()]
  }

  get(service: string): Lookup | undefined {
    return this.#found.get(service) ?? this.#empty.get(service)
  }

  /** The same for who asks for it now: it is the last to go. */
  touch(service: string): Lookup | undefined {
    for (const lookups of [this.#found, this.#empty]) {
      const lookup = lookups.get(service)
      if (lookup === undefined) continue
      lookups.delete(service)
      lookups.set(service, lookup)
      return lookup
    }
    return undefined
  }

  /** Puts it where it belongs since what is known of the name; another goes when there are too many. */
  keep(lookup: Lookup): void {
    const { service, known } = lookup.page
    this.delete(service)
    const [mine, other] = known === undefined ? [this.#empty, this.#found] : [this.#found, this.#empty]
    mine.set(service, lookup)
    if (mine.size + other.size <= this.#most) return
    // The one that has just come is being asked for: it stays, if only until the next name.
    const from = mine === this.#found && other.size > 0 ? other : mine.size > 1 ? mine : other
    for (const oldest of from.keys()) {
      from.delete(oldest)
      return
    }
  }

  /** A load has ended. A name that went meanwhile comes back only if it has rules. */
  settle(lookup: Lookup): void {
    const { service, known } = lookup.page
    const present = this.get(service)
    const isForgotten = present === undefined && known !== undefined && !lookup.isHandedOver
    if (present !== lookup && !isForgotten) return
    if (this.#found.has(service) !== (known !== undefined)) this.keep(lookup)
  }

  delete(service: string): void {
    this.#found.delete(service)
    this.#empty.delete(service)
  }
}
