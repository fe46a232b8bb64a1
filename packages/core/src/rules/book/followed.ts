import { ClosedError, InvalidRuleError } from "../../ground/errors.ts"
import { ignore, Slices } from "../../ground/time.ts"
import type { ReadyOptions } from "../rule-book.ts"
import type { FoundRules, LoadedRules } from "../source.ts"
import type { Announcer } from "./announcer.ts"
import { type Load, Loader, type LoaderSettings } from "./loader.ts"
import { type Loads, readAll, requireLoaded } from "./loads.ts"
import type { ListAll, ParsedBookOptions } from "./options.ts"
import { type LoadFailure, loadError, NOTHING, type SourceRules } from "./rule-snapshot.ts"
import type { RulesReader, ServiceRules } from "./service-rules.ts"
import { closed } from "./waiting-list.ts"

/** Stands for rules that a service already has, and that are not read again. */
const UNREAD: LoadedRules = { rules: [], problems: [] }

export interface FollowedOptions extends Pick<ParsedBookOptions, "name" | "listAll" | "loadSync"> {
  readonly loads: Loads
  readonly announcer: Announcer
  readonly settings: LoaderSettings
  /** Returns the rules of a service that nobody followed, with what is remembered of them. */
  readonly claim: (service: string) => ServiceRules
}

/**
 * Services whose rules are kept up to date: those that are opened, and with "all" those of the list. The list loads those
 * that it has; the loader of any other is kept.
 */
export class Followed {
  readonly #options: FollowedOptions
  readonly #rules = new Map<string, ServiceRules>()
  /** Loads the list of all services. */
  readonly #list: Loader | undefined

  constructor(options: FollowedOptions) {
    this.#options = options
    const { listAll, announcer, settings } = options
    if (listAll === undefined) return
    this.#list = new Loader(settings, {
      load: (load) => this.#loadList(listAll, load),
      onError: (error) => announcer.listFailed(error, this.#all),
      onStale: (ageMs) => announcer.stale(ageMs, undefined, this.#all),
    })
  }

  /** Begins with the list. */
  start(): void {
    this.#list?.keep()
  }

  get(service: string): ServiceRules | undefined {
    return this.#rules.get(service)
  }

  /** What keeps the rules up to date. */
  loaderOf({ loader }: ServiceRules): Loader {
    return loader.isKept ? loader : (this.#list ?? loader)
  }

  /** Whether it is known which services the list has. */
  get isListLoaded(): boolean {
    return this.#list === undefined || this.#list.loadedAtMs !== undefined
  }

  /** Resolves when that is known. */
  async listReady(options: ReadyOptions): Promise<void> {
    await this.#list?.ready(options)
  }

  /** Resolves when the rules of all are loaded that somebody has opened. */
  async ready(options: ReadyOptions): Promise<void> {
    // Without a list there is nothing to wait for, not even for a turn, in which the book may be closed.
    if (this.#list !== undefined) await this.#list.ready(options)
    const read = this.#all.filter(({ readers }) => readers.size > 0)
    await Promise.all(read.map((rules) => rules.ready(options)))
  }

  /**
   * Follows a service for a reader, which gets the edition at once if there is one. If the source can load synchronously,
   * there is one. Throws RuleSourceError if that load fails, and InvalidRuleError if any rule of the service is invalid.
   */
  open(service: string, reader: RulesReader): ServiceRules {
    const { loads, loadSync } = this.#options
    const rules = this.#follow(service)
    if (loadSync !== undefined) {
      const { edition, loader } = rules
      if (edition === undefined) loader.keepFrom((number) => loads.sync(rules, loadSync, number))
      else if (edition.problems.length > 0) throw new InvalidRuleError(edition.problems)
    }
    rules.readers.add(reader)
    if (rules.edition !== undefined) reader.onEdition(rules.edition, "loaded")
    if (!rules.loader.isKept && !rules.isListed && this.isListLoaded) rules.loader.keep()
    return rules
  }

  /** The reader is told no more; a service that nobody reads is followed no longer, unless it is in the list. */
  leave(service: string, reader: RulesReader): void {
    const rules = this.#rules.get(service)
    rules?.readers.delete(reader)
    if (rules === undefined || rules.readers.size > 0) return
    rules.end()
    if (rules.isListed) return
    rules.loader.end()
    this.#unfollow(rules)
  }

  /** Loads all of it. */
  reload(): void {
    for (const loader of this.#loaders) loader.reload()
  }

  /** Resolves when what loads have read that began after the call is in force. */
  async refreshAll(): Promise<void> {
    await Promise.all(this.#loaders.map((loader) => loader.refresh()))
  }

  /** Nothing is loaded any more. Who waits is told so. */
  close(): void {
    this.#list?.close()
    for (const rules of this.#all) rules.close(closed())
  }

  get #all(): readonly ServiceRules[] {
    return [...this.#rules.values()]
  }

  /** Those that are kept. The list is the last, so that it also satisfies those whose services it has. */
  get #loaders(): readonly Loader[] {
    const own = this.#all.map(({ loader }) => loader).filter(({ isKept }) => isKept)
    return this.#list === undefined ? own : [...own, this.#list]
  }

  #follow(service: string): ServiceRules {
    const followed = this.#rules.get(service)
    if (followed !== undefined) return followed
    const rules = this.#options.claim(service)
    rules.follow()
    this.#rules.set(service, rules)
    return rules
  }

  #unfollow(rules: ServiceRules): void {
    rules.unfollow()
    this.#rules.delete(rules.service)
  }

  /** Loads the list. Rejects when it cannot be read to its end; a service whose rules are wrong keeps no other from its own. */
  async #loadList(listAll: ListAll, load: Load): Promise<void> {
    const { loads, announcer, settings } = this.#options
    const { number, fresh, loading } = load
    try {
      await readAll(listAll, load, settings.timing, (found) => this.#readListed(number, found))
    } catch (error) {
      if (loading.signal.aborted && error instanceof ClosedError) throw error
      const failure = loadError(undefined, error)
      for (const rules of this.#rules.values()) rules.fail(failure)
      throw failure
    }
    // Only a list that was read to its end says who is not in it.
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
        loads.take(rules, number, NOTHING)
      }
    }
    announcer.listLoaded()
    await Promise.all(asked)
  }

  /** Reads what is listed for a service if it is new, and takes it. */
  #readListed(load: number, found: FoundRules): void | Promise<void> {
    const { service, stamp } = found
    const take = (read: () => LoadedRules): void => this.#takeListed(load, service, { stamp, read })
    const fail = (error: unknown): void =>
      take(() => {
        throw error
      })
    // Taken in the same turn, so the stamp alone still decides.
    if (this.#rules.get(service)?.hasRead(stamp) === true) return take(() => UNREAD)
    let loaded: LoadedRules | Promise<LoadedRules>
    try {
      loaded = found.read()
    } catch (error) {
      return fail(error)
    }
    if (loaded instanceof Promise) return loaded.then((rules) => take(() => rules), fail)
    const rules = loaded
    return take(() => rules)
  }

  #takeListed(load: number, service: string, found: SourceRules): void {
    const { loads, announcer, name } = this.#options
    const rules = this.#follow(service)
    rules.isListed = true
    let failure: LoadFailure | undefined
    try {
      const read = () => requireLoaded(found.read(), "read()", name)
      loads.take(rules, load, { stamp: found.stamp, read })
      announcer.loaded(rules)
    } catch (error) {
      failure = loadError(service, error)
      announcer.failed(failure, rules)
      rules.fail(failure)
    }
    rules.loader.rest(load, failure)
  }
}

/** Asks by its name for a service that a limiter follows and that is not in the list: it may yet have rules. */
async function confirm(loader: Loader, fresh: boolean): Promise<void> {
  if (loader.isKept) return
  loader.keep(fresh)
  await loader.ready({}).catch(ignore)
}
