import { ClosedError, InvalidRuleError } from "@sluice/core"
import { ignore, type ReadyOptions, Slices } from "@sluice/core/rules"
import type { FoundRules, LoadedRules } from "../source.ts"
import type { Announcer } from "./announcer.ts"
import { type Load, Loader } from "./loader.ts"
import { type Loads, readAll, requireLoaded } from "./loads.ts"
import type { ListAll, ParsedBookOptions } from "./options.ts"
import { type LoadFailure, loadError, NOTHING } from "./rule-snapshot.ts"
import type { ServiceFollower, ServiceRules } from "./service-rules.ts"
import { closed } from "./waiting-list.ts"

/**
 * The services whose rules are kept up to date: opened services and, with "all", the services of the list. The list
 * loads the services that it contains. Any other service keeps a loader of its own.
 */
export class Followed {
  readonly #options: ParsedBookOptions
  readonly #loads: Loads
  readonly #announcer: Announcer
  readonly #claim: (service: string) => ServiceRules
  readonly #rules = new Map<string, ServiceRules>()
  /** Loads the list of all services. */
  readonly #list: Loader | undefined

  /** `claim` returns the rules of a service that was not followed yet, including what the book remembers of it. */
  constructor(
    options: ParsedBookOptions,
    loads: Loads,
    announcer: Announcer,
    claim: (service: string) => ServiceRules,
  ) {
    this.#options = options
    this.#loads = loads
    this.#announcer = announcer
    this.#claim = claim
    const { listAll } = options
    if (listAll === undefined) return
    this.#list = new Loader(options, {
      load: (load) => this.#loadList(listAll, load),
      onError: (error) => announcer.listFailed(error, this.#all),
      onStale: (ageMs) => announcer.stale(ageMs, undefined, this.#all),
    })
  }

  /** Starts loading the list. */
  start(): void {
    this.#list?.keep()
  }

  get(service: string): ServiceRules | undefined {
    return this.#rules.get(service)
  }

  /** Returns the loader that keeps these rules up to date. */
  loaderOf({ loader }: ServiceRules): Loader {
    return loader.isKept ? loader : (this.#list ?? loader)
  }

  /** True if it is known which services the list contains. */
  get isListLoaded(): boolean {
    return this.#list === undefined || this.#list.loadedAtMs !== undefined
  }

  /** Resolves when it is known which services the list contains. */
  async listReady(options: ReadyOptions): Promise<void> {
    await this.#list?.ready(options)
  }

  /** Resolves when the rules of every opened service are loaded. */
  async ready(options: ReadyOptions): Promise<void> {
    // Without a list, do not await anything here: the book could be closed in that turn.
    if (this.#list !== undefined) await this.#list.ready(options)
    const read = this.#all.filter(({ readers }) => readers.size > 0)
    await Promise.all(read.map((rules) => rules.ready(options)))
  }

  /**
   * Follows a service for a reader and passes it the edition immediately, if there is one. If the source can load
   * synchronously, there always is one. Throws RuleSourceError if that load fails, and InvalidRuleError if any rule of
   * the service is invalid.
   */
  open(service: string, follower: ServiceFollower): ServiceRules {
    const { loadSync } = this.#options
    const rules = this.#follow(service)
    if (loadSync !== undefined) {
      const { edition, loader } = rules
      if (edition === undefined) loader.keepFrom((number) => this.#loads.sync(rules, loadSync, number))
      else if (edition.problems.length > 0) throw new InvalidRuleError(edition.problems)
    }
    rules.readers.add(follower)
    if (rules.edition !== undefined) follower.onEdition(rules.edition, "loaded")
    if (!rules.loader.isKept && !rules.isListed && this.isListLoaded) rules.loader.keep()
    return rules
  }

  /** Stops reporting to the reader. A service without readers is no longer followed, unless the list contains it. */
  leave(service: string, follower: ServiceFollower): void {
    const rules = this.#rules.get(service)
    rules?.readers.delete(follower)
    if (rules === undefined || rules.readers.size > 0) return
    rules.end()
    if (rules.isListed) return
    rules.loader.end()
    this.#unfollow(rules)
  }

  /** Loads the list and all services again. */
  reload(): void {
    for (const loader of this.#loaders) loader.reload()
  }

  /** Resolves when the results of loads that began after the call are in force. */
  async refreshAll(): Promise<void> {
    await Promise.all(this.#loaders.map((loader) => loader.refresh()))
  }

  /** Stops loading and rejects all waiting calls. */
  close(): void {
    this.#list?.close()
    for (const rules of this.#all) rules.close(closed())
  }

  get #all(): readonly ServiceRules[] {
    return [...this.#rules.values()]
  }

  /**
   * The loaders that are kept. The list is the last: its load has the highest number, so it also satisfies the loaders
   * of its services.
   */
  get #loaders(): readonly Loader[] {
    const own = this.#all.map(({ loader }) => loader).filter(({ isKept }) => isKept)
    return this.#list === undefined ? own : [...own, this.#list]
  }

  #follow(service: string): ServiceRules {
    const followed = this.#rules.get(service)
    if (followed !== undefined) return followed
    const rules = this.#claim(service)
    rules.follow()
    this.#rules.set(service, rules)
    return rules
  }

  #unfollow(rules: ServiceRules): void {
    rules.unfollow()
    this.#rules.delete(rules.service)
  }

  /** Loads the list. Rejects if it cannot be read to its end. Invalid rules of one service do not affect the others. */
  async #loadList(listAll: ListAll, load: Load): Promise<void> {
    const { number, fresh, loading } = load
    try {
      await readAll(listAll, load, this.#options.timing, (found) => this.#takeListed(number, found))
    } catch (error) {
      if (loading.signal.aborted && error instanceof ClosedError) throw error
      const failure = loadError(undefined, error)
      for (const rules of this.#rules.values()) rules.fail(failure)
      throw failure
    }
    // Only a complete list shows which services are not in it.
    const asked: Promise<void>[] = []
    const slices = new Slices()
    for (const rules of this.#rules.values()) {
      if (slices.isUsedUp) await slices.pause()
      loading.signal.throwIfAborted()
      if (rules.takenFrom >= number) continue
      rules.isListed = false
      if (rules.readers.size > 0) asked.push(confirm(rules.loader, fresh))
      else {
        this.#unfollow(rules)
        this.#loads.take(rules, number, NOTHING)
      }
    }
    this.#announcer.listLoaded()
    await Promise.all(asked)
  }

  /** Reads the listed rules of a service if they are new, and takes them. */
  async #takeListed(load: number, found: FoundRules): Promise<void> {
    const { service, stamp } = found
    let loaded: LoadedRules | LoadFailure = { ...NOTHING, stamp }
    // Known rules are taken in the same turn, so the stamp still matches and their content is not needed.
    if (this.#rules.get(service)?.hasRead(stamp) !== true) {
      try {
        loaded = { ...requireLoaded(await found.read(), "read()", this.#options.name), stamp }
      } catch (error) {
        loaded = loadError(service, error)
      }
    }
    const rules = this.#follow(service)
    rules.isListed = true
    let failure: LoadFailure | undefined
    try {
      this.#loads.take(rules, load, loaded)
      this.#announcer.loaded(rules)
    } catch (error) {
      failure = loadError(service, error)
      this.#announcer.failed(failure, rules)
      rules.fail(failure)
    }
    rules.loader.rest(load, failure)
  }
}

/**
 * Loads a service by its name if a limiter follows it but the list does not contain it. It may have rules nevertheless.
 */
async function confirm(loader: Loader, fresh: boolean): Promise<void> {
  if (loader.isKept) return
  loader.keep(fresh)
  await loader.ready({}).catch(ignore)
}
