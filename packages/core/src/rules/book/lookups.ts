import { AsyncResource } from "node:async_hooks"
import { InvalidRuleError, type Problem } from "../../ground/errors.ts"
import { ignore } from "../../ground/time.ts"
import type { Edition } from "../rule-book.ts"
import type { LoadLoop } from "./load-loop.ts"
import { type Lookup, RememberedLookups } from "./remembered-lookups.ts"
import { isOutage, type LoadFailure } from "./rule-snapshot.ts"
import { Page } from "./service-rules.ts"
import { retryMs, type Timing } from "./timing.ts"
import { closed } from "./waiting-list.ts"

export interface LookupsOptions {
  /** Names that are remembered. */
  readonly most: number
  /** How long an answer is taken for granted. */
  readonly intervalMs: number
  readonly staleAfterMs: number
  readonly timing: Timing
  /** One load of a service by its name into its page. Rejects with why not. `fresh`: what is stored now. */
  readonly load: (page: Page, loading: AbortController, fresh: boolean) => Promise<void>
  /** Of a failed load; once for one document, and once while the source itself fails. */
  readonly onError: (error: LoadFailure, page: Page) => void
}

/** Loads at one time, of names that have rules and of others each, so that neither keep the others waiting. */
const MOST_AT_ONCE = 16
/** Of names that have no rules, as far as is known: a stranger who makes names up costs the source no more than that. */
const MOST_IN_AN_INTERVAL = 1_000
/** As long as a key may be in DynamoDB. A longer name is nobody's. */
const LONGEST_NAME = 2_048

/** Services that were asked for by names of which nothing was known: what was found, or that nothing was. */
export class Lookups {
  readonly #options: LookupsOptions
  readonly #names: RememberedLookups
  /** Loads of names that have rules, and of others. */
  readonly #ofFound = new Set<AbortController>()
  readonly #ofOthers = new Set<AbortController>()
  /** What a request causes must not keep that request's AsyncLocalStorage alive. */
  readonly #outside = new AsyncResource("SluiceRuleBook")
  #intervalEndsMs = 0
  #begunInInterval = 0
  #isFailing = false
  /** The first problem of the document told last, of whichever name: one that is for many yields the same to each. */
  #told: Problem | undefined
  #isClosed = false

  constructor(options: LookupsOptions) {
    this.#options = options
    this.#names = new RememberedLookups(options.most)
  }

  /** What is known of the name. Asks for it in the background when it is time to. */
  read(service: string): Edition | undefined {
    const lookup = this.#names.touch(service)
    const isDue = lookup === undefined || lookup.dueMs <= this.#options.timing.now()
    if (isDue && lookup?.loading === undefined && this.#mayBegin(service, lookup)) {
      this.#begin(lookup ?? this.#remember(service), false).catch(ignore)
    }
    return lookup?.page.known
  }

  /** The same once it has been asked for. Rejects with why it cannot be, until there is an answer. */
  async find(service: string): Promise<Edition | undefined> {
    this.read(service)
    const lookup = this.#names.get(service)
    if (lookup === undefined) return undefined
    while (lookup.loadedAtMs === undefined && lookup.loading !== undefined) await lookup.loading.catch(ignore)
    if (lookup.loadedAtMs === undefined && lookup.page.known === undefined) {
      if (this.#isClosed) throw closed()
      if (lookup.error !== undefined) throw lookup.error
    }
    return lookup.page.known
  }

  /** Asks for it now, whatever is known. */
  async refresh(service: string): Promise<void> {
    await this.#begin(this.#names.get(service) ?? this.#remember(service), true)
  }

  /** Those of names that have rules now. */
  get found(): readonly Lookup[] {
    return this.#names.found
  }

  /**
   * Asks anew for those that are not followed meanwhile, some at a time. Rejects with the first error; one of the source
   * itself ends it, as it would meet all.
   */
  async refreshAll(found: readonly Lookup[]): Promise<void> {
    const errors: unknown[] = []
    let isEnding = false
    const lookups = found.values()
    const refreshSome = async (): Promise<void> => {
      for (const lookup of lookups) {
        if (isEnding) return
        if (lookup.isHandedOver) continue
        try {
          await this.#begin(lookup, true)
        } catch (error) {
          errors.push(error)
          isEnding ||= !(error instanceof InvalidRuleError)
        }
      }
    }
    await Promise.all(Array.from({ length: MOST_AT_ONCE }, refreshSome))
    if (errors.length > 0) throw errors[0]
  }

  /** What is known of it, asking nobody. */
  pageOf(service: string): Page | undefined {
    return this.#names.get(service)?.page
  }

  /** Since when that is known, and why not since later, asking nobody. */
  standingOf(service: string): Pick<LoadLoop, "loadedAtMs" | "isStale" | "error"> {
    const lookup = this.#names.get(service)
    if (lookup === undefined) return { loadedAtMs: undefined, isStale: false, error: undefined }
    const { loadedAtMs, askedAtMs, error } = lookup
    const ageMs = this.#options.timing.now() - (loadedAtMs ?? askedAtMs)
    return { loadedAtMs, isStale: isOutage(error) && ageMs >= this.#options.staleAfterMs, error }
  }

  /** Hands it over to who follows it from now on, where it has rules. */
  remove(service: string): Page | undefined {
    const lookup = this.#names.get(service)
    if (lookup === undefined) return undefined
    lookup.isHandedOver = true
    this.#names.delete(service)
    return lookup.page.known === undefined ? undefined : lookup.page
  }

  /** What is stored may have changed: every name may be asked for again, and that there is nothing is not known now. */
  expire(): void {
    for (const lookup of this.#names.all) {
      lookup.dueMs = 0
      lookup.loading = undefined
      lookup.countsFrom = lookup.begun + 1
      if (lookup.page.known === undefined) lookup.loadedAtMs = undefined
    }
  }

  close(): void {
    this.#isClosed = true
    for (const loading of [...this.#ofFound, ...this.#ofOthers]) loading.abort(closed())
  }

  #mayBegin(service: string, lookup: Lookup | undefined): boolean {
    if (this.#isClosed || service.length > LONGEST_NAME) return false
    // Once in an interval each, and no more of them than are remembered: that is bound enough.
    if (lookup?.page.known !== undefined) return this.#ofFound.size < MOST_AT_ONCE
    if (this.#ofOthers.size >= MOST_AT_ONCE) return false
    const { timing, intervalMs } = this.#options
    const nowMs = timing.now()
    if (nowMs >= this.#intervalEndsMs) {
      this.#intervalEndsMs = nowMs + intervalMs
      this.#begunInInterval = 0
    }
    if (this.#begunInInterval >= MOST_IN_AN_INTERVAL) return false
    this.#begunInInterval += 1
    return true
  }

  #remember(service: string): Lookup {
    // A name that was cut out of a request would keep the request's text alive.
    const page = new Page(JSON.parse(JSON.stringify(service)) as string)
    const lookup: Lookup = {
      page,
      askedAtMs: this.#options.timing.now(),
      loadedAtMs: undefined,
      dueMs: 0,
      loading: undefined,
      begun: 0,
      settled: 0,
      countsFrom: 1,
      error: undefined,
      failures: 0,
      said: undefined,
      isHandedOver: false,
    }
    this.#names.keep(lookup)
    return lookup
  }

  #begin(lookup: Lookup, fresh: boolean): Promise<void> {
    lookup.begun += 1
    const loading = this.#outside.runInAsyncScope(() => this.#load(lookup, lookup.begun, fresh))
    lookup.loading = loading
    return loading
  }

  async #load(lookup: Lookup, number: number, fresh: boolean): Promise<void> {
    const { timing, load } = this.#options
    const begunAtMs = timing.now()
    const loading = new AbortController()
    const underWay = lookup.page.known === undefined ? this.#ofOthers : this.#ofFound
    underWay.add(loading)
    try {
      await load(lookup.page, loading, fresh)
      if (number > lookup.settled) this.#succeed(lookup, number, begunAtMs)
    } catch (error) {
      if (number > lookup.settled && !this.#isClosed) this.#fail(lookup, number, error as LoadFailure)
      throw error
    } finally {
      underWay.delete(loading)
      // An older one must not end what a newer one has begun.
      if (number === lookup.begun) lookup.loading = undefined
      this.#names.settle(lookup)
    }
  }

  #succeed(lookup: Lookup, number: number, begunAtMs: number): void {
    this.#isFailing = false
    if (lookup.said !== undefined) this.#told = undefined
    lookup.settled = number
    lookup.said = undefined
    lookup.error = undefined
    lookup.failures = 0
    if (number < lookup.countsFrom) return
    lookup.loadedAtMs = begunAtMs
    lookup.dueMs = begunAtMs + this.#options.intervalMs
  }

  #fail(lookup: Lookup, number: number, error: LoadFailure): void {
    const { timing } = this.#options
    lookup.settled = number
    lookup.error = error
    lookup.failures += 1
    if (number >= lookup.countsFrom) lookup.dueMs = timing.now() + retryMs(lookup.failures, timing)
    if (this.#isTold(lookup, error)) return
    this.#options.onError(error, lookup.page)
  }

  /** Whether it has been told, or is no news; it counts as told from then on. */
  #isTold(lookup: Lookup, error: LoadFailure): boolean {
    if (!(error instanceof InvalidRuleError)) {
      const wasFailing = this.#isFailing
      this.#isFailing = true
      return wasFailing
    }
    const [first] = error.problems
    const isTold = lookup.said === error.message || (first !== undefined && first === this.#told)
    lookup.said = error.message
    this.#told = first
    return isTold
  }
}
