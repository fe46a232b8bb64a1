import { InvalidRuleError } from "@sluice/core"
import type { Edition } from "@sluice/core/rules"
import { closed, type Load } from "./loader.ts"
import type { ParsedBookOptions } from "./options.ts"
import type { ServiceRules } from "./service-rules.ts"

/**
 * Maximum number of concurrent loads, counted separately for names with rules and for other names, so that neither group delays the
 * other.
 */
const MOST_AT_ONCE = 16
/**
 * Maximum number of loads per interval for names without known rules. This bounds the load that made-up names can put
 * on the source.
 */
const MOST_IN_AN_INTERVAL = 1_000
/** Maximum length of a DynamoDB key, and therefore of a service's name. */
const LONGEST_NAME = 2_048

/** Services that are not followed and are loaded by name when they are looked up. */
export class Lookups {
  readonly #options: ParsedBookOptions
  readonly #create: (service: string) => ServiceRules
  /** The rules of the names that the book remembers, beginning with the least recently used name. */
  readonly #remembered = new Map<string, ServiceRules>()
  /** The running loads of names with rules, and of other names. */
  readonly #ofFound = new Map<Load, ServiceRules>()
  readonly #ofOthers = new Map<Load, ServiceRules>()
  #intervalEndsMs = 0
  #begunInInterval = 0
  #isClosed = false

  /** Creates the lookups. `create` returns the rules of a service that has not been loaded yet. */
  constructor(options: ParsedBookOptions, create: (service: string) => ServiceRules) {
    this.#options = options
    this.#create = create
  }

  /** Returns the known rules of the name. Loads the rules in the background when a load is due. */
  read(service: string): Edition | undefined {
    const rules = this.get(service)
    if (rules !== undefined) this.#keep(rules)
    const isDue = rules === undefined || rules.loader.isDue
    if (isDue && this.#mayBegin(service, rules)) (rules ?? this.#remember(service)).loader.reload()
    return rules?.known
  }

  /**
   * Returns the rules of a name after it has been loaded. Rejects with the load error if the name was never loaded
   * successfully.
   */
  async find(service: string): Promise<Edition | undefined> {
    this.read(service)
    const rules = this.get(service)
    if (rules === undefined) return undefined
    const { loader } = rules
    await loader.answered()
    if (loader.loadedAtMs === undefined && rules.known === undefined) {
      if (this.#isClosed) throw closed()
      // In the meantime, a limiter has opened and closed the service, which closed this loader.
      if (loader.isClosed) return this.find(service)
      const error = loader.error ?? rules.rejection
      if (error !== undefined) throw error
    }
    return rules.known
  }

  /** Loads the name now, even if its rules are known. */
  async refresh(service: string): Promise<void> {
    await (this.get(service) ?? this.#remember(service)).loader.refresh()
  }

  /** The rules of remembered names that have rules now. */
  get found(): readonly ServiceRules[] {
    return [...this.#remembered.values()].filter(({ known }) => known !== undefined)
  }

  /**
   * Reloads the given rules if they are still remembered and not followed. Limits the number of concurrent loads.
   * Rejects with the first error. An error of the source itself stops the loading, because it would fail every other
   * name too.
   */
  async refreshAll(found: readonly ServiceRules[]): Promise<void> {
    const errors: unknown[] = []
    const all = found.values()
    const refreshSome = async (): Promise<void> => {
      for (const rules of all) {
        if (errors.some((error) => !(error instanceof InvalidRuleError))) return
        if (this.get(rules.service) !== rules) continue
        await rules.loader.refresh().catch((error: unknown) => errors.push(error))
      }
    }
    await Promise.all(Array.from({ length: MOST_AT_ONCE }, refreshSome))
    if (errors.length > 0) throw errors[0]
  }

  /** Returns the remembered rules of the name, without loading them. */
  get(service: string): ServiceRules | undefined {
    return this.#remembered.get(service)
  }

  /** Forgets the name and returns its remembered rules to the code that starts to follow them. */
  remove(service: string): ServiceRules | undefined {
    const rules = this.get(service)
    this.#remembered.delete(service)
    return rules
  }

  /**
   * Marks all remembered rules as outdated, because the source may have changed. Every name may be loaded again
   * immediately. Names without rules count as unknown again.
   */
  expire(): void {
    for (const { loader, known } of this.#remembered.values()) loader.expire(known !== undefined)
  }

  /** Counts the load of a name while the load is running. */
  async count(rules: ServiceRules, load: Load, loaded: Promise<void>): Promise<void> {
    const underWay = rules.known === undefined ? this.#ofOthers : this.#ofFound
    underWay.set(load, rules)
    try {
      await loaded
    } finally {
      underWay.delete(load)
      // Remember a name that was evicted during the load again only if it has rules.
      const isForgotten = this.get(rules.service) === undefined && !rules.isFollowed
      if (isForgotten && rules.known !== undefined) this.#keep(rules)
    }
  }

  /** Stops loading and rejects all waiting calls. */
  close(): void {
    this.#isClosed = true
    const error = closed()
    for (const { loader } of [...this.#ofFound.values(), ...this.#ofOthers.values()]) loader.close(error)
  }

  #mayBegin(service: string, rules: ServiceRules | undefined): boolean {
    if (this.#isClosed || service.length > LONGEST_NAME) return false
    // Each of these names is loaded once per interval, and their number is bounded by the number of remembered names.
    // No other bound is needed.
    if (rules?.known !== undefined) return this.#ofFound.size < MOST_AT_ONCE
    if (this.#ofOthers.size >= MOST_AT_ONCE) return false
    const { timing, rememberMs } = this.#options
    const nowMs = timing.now()
    if (nowMs >= this.#intervalEndsMs) {
      this.#intervalEndsMs = nowMs + rememberMs
      this.#begunInInterval = 0
    }
    if (this.#begunInInterval >= MOST_IN_AN_INTERVAL) return false
    this.#begunInInterval += 1
    return true
  }

  #remember(service: string): ServiceRules {
    // Copy the name: a name that was cut out of a request would keep the request's text alive.
    const rules = this.#create(JSON.parse(JSON.stringify(service)) as string)
    this.#keep(rules)
    return rules
  }

  /** Remembers the name as the most recently used. Evicts another name if too many are remembered. */
  #keep(rules: ServiceRules): void {
    this.#remembered.delete(rules.service)
    this.#remembered.set(rules.service, rules)
    if (this.#remembered.size <= this.#options.maxUnknown) return
    // Evict names without rules first, so that made-up names cannot evict real ones. Do not evict the new name,
    // because it is being looked up.
    const others = [...this.#remembered.values()].slice(0, -1)
    const evicted = others.find(({ known }) => known === undefined) ?? others[0]
    if (evicted !== undefined) this.#remembered.delete(evicted.service)
  }
}
