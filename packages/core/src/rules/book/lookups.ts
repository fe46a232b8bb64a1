import { InvalidRuleError } from "../../ground/errors.ts"
import type { Edition } from "../rule-book.ts"
import type { Load } from "./loader.ts"
import type { Loads } from "./loads.ts"
import type { ParsedBookOptions } from "./options.ts"
import { RememberedRules } from "./remembered-rules.ts"
import type { ServiceRules } from "./service-rules.ts"
import { closed } from "./waiting-list.ts"

export interface LookupsOptions extends Pick<ParsedBookOptions, "maxUnknown" | "rememberMs" | "timing"> {
  readonly loads: Loads
  /** Returns rules of which nothing is known yet. */
  readonly create: (service: string) => ServiceRules
}

/** Loads at one time, of names that have rules and of others each, so that neither keep the others waiting. */
const MOST_AT_ONCE = 16
/** Of names that have no rules, as far as is known: a stranger who makes names up costs the source no more than that. */
const MOST_IN_AN_INTERVAL = 1_000
/** As long as a key may be in DynamoDB. A longer name is nobody's. */
const LONGEST_NAME = 2_048

/** Services that nobody follows, and that are loaded when somebody asks for them by their names. */
export class Lookups {
  readonly #options: LookupsOptions
  readonly #remembered: RememberedRules
  /** Loads of names that have rules, and of others. */
  readonly #ofFound = new Set<Load>()
  readonly #ofOthers = new Set<Load>()
  #intervalEndsMs = 0
  #begunInInterval = 0
  #isClosed = false

  constructor(options: LookupsOptions) {
    this.#options = options
    this.#remembered = new RememberedRules(options.maxUnknown)
  }

  /** What is known of the name. Asks for it in the background when it is time to. */
  read(service: string): Edition | undefined {
    const rules = this.#remembered.touch(service)
    const isDue = rules === undefined || rules.loader.isDue
    if (isDue && this.#mayBegin(service, rules)) (rules ?? this.#remember(service)).loader.reload()
    return rules?.known
  }

  /** The same once it has been asked for. Rejects with why it cannot be, until there is an answer. */
  async find(service: string): Promise<Edition | undefined> {
    this.read(service)
    const rules = this.get(service)
    if (rules === undefined) return undefined
    const { loader } = rules
    await loader.answered()
    if (loader.loadedAtMs === undefined && rules.known === undefined) {
      if (this.#isClosed) throw closed()
      // A limiter of the service has come and gone, and has taken the loader with it.
      if (loader.isClosed) return this.find(service)
      const error = loader.error ?? rules.rejection
      if (error !== undefined) throw error
    }
    return rules.known
  }

  /** Asks for it now, whatever is known. */
  async refresh(service: string): Promise<void> {
    await (this.get(service) ?? this.#remember(service)).loader.refresh()
  }

  /** Those of names that have rules now. */
  get found(): readonly ServiceRules[] {
    return this.#remembered.found
  }

  /**
   * Asks again for those that are still remembered and not followed, some at a time. Rejects with the first error; one of the source
   * itself ends it, as it would meet all.
   */
  async refreshAll(found: readonly ServiceRules[]): Promise<void> {
    const errors: unknown[] = []
    let isEnding = false
    const all = found.values()
    const refreshSome = async (): Promise<void> => {
      for (const rules of all) {
        if (isEnding) return
        if (this.get(rules.service) !== rules) continue
        try {
          await rules.loader.refresh()
        } catch (error) {
          errors.push(error)
          isEnding ||= !(error instanceof InvalidRuleError)
        }
      }
    }
    await Promise.all(Array.from({ length: MOST_AT_ONCE }, refreshSome))
    if (errors.length > 0) throw errors[0]
  }

  /** What is remembered of it, asking nobody. */
  get(service: string): ServiceRules | undefined {
    return this.#remembered.get(service)
  }

  /** Hands over what is remembered to whoever follows the name from now on. */
  remove(service: string): ServiceRules | undefined {
    const rules = this.get(service)
    this.#remembered.delete(service)
    return rules
  }

  /** What is stored may have changed: every name may be asked for again, and that there is nothing is not known now. */
  expire(): void {
    for (const { loader, known } of this.#remembered.all) loader.expire(known !== undefined)
  }

  /** Loads the rules of a name. */
  async load(rules: ServiceRules, load: Load): Promise<void> {
    const underWay = rules.known === undefined ? this.#ofOthers : this.#ofFound
    underWay.add(load)
    try {
      await this.#options.loads.byName(rules, load)
    } finally {
      underWay.delete(load)
      this.#remembered.settle(rules)
    }
  }

  close(): void {
    this.#isClosed = true
    for (const { loading } of [...this.#ofFound, ...this.#ofOthers]) loading.abort(closed())
  }

  #mayBegin(service: string, rules: ServiceRules | undefined): boolean {
    if (this.#isClosed || service.length > LONGEST_NAME) return false
    // Once in an interval each, and no more of them than are remembered: that is bound enough.
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
    // A name that was cut out of a request would keep the request's text alive.
    const rules = this.#options.create(JSON.parse(JSON.stringify(service)) as string)
    this.#remembered.keep(rules)
    return rules
  }
}
