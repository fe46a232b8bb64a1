import { AsyncResource } from "node:async_hooks"
import { ClosedError, InvalidRuleError } from "../../errors.ts"
import type { Edition } from "../rule-book.ts"
import type { LoadFailure } from "./load-loop.ts"
import { Page } from "./page.ts"
import { ignore, type Timing } from "./timing.ts"

export interface LookupsOptions {
  /** Names that are remembered; the one that was not asked for longest goes first. */
  readonly most: number
  /** How long an answer is taken for granted. */
  readonly intervalMs: number
  readonly timing: Timing
  /** One load of a service by its name into its page. Rejects with why not. */
  readonly load: (page: Page, loading: AbortController) => Promise<void>
  /** Of a failed load; once for one document, and once while the source itself fails. */
  readonly onError: (error: LoadFailure, service: string) => void
}

interface Lookup {
  /** Absent while the source is not known to have anything for the name. */
  page?: Page
  loadedAtMs?: number
  /** When it may be asked for again. */
  dueMs: number
  loading?: Promise<void>
  /** Why nothing of its document can be used. */
  said?: string
}

/** Loads at one time, and in one interval: a stranger who makes names up costs the source no more than that. */
const MOST_AT_ONCE = 16
const MOST_IN_AN_INTERVAL = 1_000
/** As long as a key may be in DynamoDB. A longer name is nobody's. */
const LONGEST_NAME = 2_048

/** Services that were asked for by names of which nothing was known: what was found, or that nothing was. */
export class Lookups {
  readonly #options: LookupsOptions
  /** The one that was not asked for longest comes first. */
  readonly #lookups = new Map<string, Lookup>()
  readonly #underWay = new Set<AbortController>()
  /** What a request causes must not keep that request's AsyncLocalStorage alive. */
  readonly #outside = new AsyncResource("SluiceRuleBook")
  #intervalEndsMs = 0
  #begunInInterval = 0
  #isFailing = false
  #isClosed = false

  constructor(options: LookupsOptions) {
    this.#options = options
  }

  get size(): number {
    return this.#lookups.size
  }

  /** What is known of the name. Asks for it in the background when it is time to. */
  read(service: string): Edition | undefined {
    const lookup = this.#lookups.get(service)
    if (lookup !== undefined) {
      this.#lookups.delete(service)
      this.#lookups.set(service, lookup)
    }
    const isDue = lookup === undefined || lookup.dueMs <= this.#options.timing.now()
    if (isDue && lookup?.loading === undefined && this.#mayBegin(service)) {
      this.#begin(service, lookup).catch(ignore)
    }
    return lookup?.page?.known
  }

  /** The same once it has been asked for. Rejects when that failed. */
  async find(service: string): Promise<Edition | undefined> {
    this.read(service)
    const lookup = this.#lookups.get(service)
    if (lookup?.loadedAtMs === undefined) await lookup?.loading
    return lookup?.page?.known
  }

  /** Asks for it now, whatever is known. */
  async refresh(service: string): Promise<void> {
    await this.#begin(service, this.#lookups.get(service))
  }

  /** What is known of it, and since when, asking nobody. */
  peek(service: string): Readonly<Pick<Lookup, "page" | "loadedAtMs">> {
    return this.#lookups.get(service) ?? {}
  }

  /** Hands it over to who follows it from now on. */
  remove(service: string): Page | undefined {
    const page = this.#lookups.get(service)?.page
    this.#lookups.delete(service)
    return page
  }

  /** What is stored may have changed: every name may be asked for again. */
  expire(): void {
    for (const lookup of this.#lookups.values()) lookup.dueMs = 0
  }

  close(): void {
    this.#isClosed = true
    for (const loading of this.#underWay) loading.abort(new ClosedError("The rule book is closed"))
  }

  #mayBegin(service: string): boolean {
    const { timing, intervalMs } = this.#options
    if (this.#isClosed || service.length > LONGEST_NAME || this.#underWay.size >= MOST_AT_ONCE) return false
    const nowMs = timing.now()
    if (nowMs >= this.#intervalEndsMs) {
      this.#intervalEndsMs = nowMs + intervalMs
      this.#begunInInterval = 0
    }
    if (this.#begunInInterval >= MOST_IN_AN_INTERVAL) return false
    this.#begunInInterval += 1
    return true
  }

  #begin(service: string, known: Lookup | undefined): Promise<void> {
    // A name that was cut out of a request would keep the request's text alive.
    const name = JSON.parse(JSON.stringify(service)) as string
    const lookup = known ?? this.#remember(name)
    const loading = this.#outside.runInAsyncScope(() => this.#load(name, lookup))
    lookup.loading = loading
    return loading
  }

  #remember(name: string): Lookup {
    const lookup: Lookup = { dueMs: 0 }
    this.#lookups.set(name, lookup)
    const [oldest] = this.#lookups.keys()
    if (this.#lookups.size > this.#options.most && oldest !== undefined) this.#lookups.delete(oldest)
    return lookup
  }

  async #load(name: string, lookup: Lookup): Promise<void> {
    const { timing, intervalMs, load } = this.#options
    const page = lookup.page ?? new Page(name)
    const begunAtMs = timing.now()
    const loading = new AbortController()
    this.#underWay.add(loading)
    try {
      await load(page, loading)
      this.#isFailing = false
      delete lookup.said
      lookup.loadedAtMs = begunAtMs
      if (page.known === undefined) delete lookup.page
      else lookup.page = page
    } catch (error) {
      if (!this.#isClosed) this.#tell(error as LoadFailure, name, lookup)
      throw error
    } finally {
      this.#underWay.delete(loading)
      lookup.dueMs = begunAtMs + intervalMs
      delete lookup.loading
    }
  }

  #tell(error: LoadFailure, service: string, lookup: Lookup): void {
    if (error instanceof InvalidRuleError ? lookup.said === error.message : this.#isFailing) return
    if (error instanceof InvalidRuleError) lookup.said = error.message
    else this.#isFailing = true
    this.#options.onError(error, service)
  }
}
