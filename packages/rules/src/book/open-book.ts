import { InvalidRuleError, type RulesStatus } from "@sluice/core"
import {
  type Edition,
  keepingAlive,
  type OpenedRules,
  type ReadyOptions,
  type RulesReader,
  requireService,
  type SignalOption,
  startCall,
  type UntilLoaded,
  unlessAborted,
  VERSION,
} from "@sluice/core/rules"
import type { RefreshOptions, RuleBook, RuleBookEvents } from "../rule-book.ts"
import type { LoadedRules } from "../source.ts"
import { isRejection, type LoadFailure, loadError } from "./edition.ts"
import { type ListedServices, loadList, requireLoaded } from "./list.ts"
import { closed, type Load, Loader } from "./loader.ts"
import { Lookups } from "./lookups.ts"
import { type ParsedBookOptions, parseBookOptions, type RuleBookOptions } from "./options.ts"
import { Reporter } from "./reporter.ts"
import { ServiceReading } from "./service-reading.ts"
import { type ServiceFollower, ServiceRules } from "./service-rules.ts"
import { inTime } from "./timing.ts"

/**
 * Opens a rule book on a source, for several limiters or for a process that decides requests of many services. With
 * `fileRules(…)` or `liveRules(source)`, each limiter opens its own book.
 *
 * The book loads immediately, then at intervals, and when the source reports a change. After a failed load, the book
 * retries with a backoff from half a second to half a minute. All delays are jittered, so that many processes do not
 * load at the same time. A load times out after ten seconds.
 *
 * A version of a service's rules is accepted or rejected as a whole. While a load fails, or any rule of the version is
 * invalid, the previous version stays in force. A book does not keep the process alive, except while `ready`, `refresh`
 * or `find` is pending.
 *
 * The book itself never reads synchronously. However, creating a limiter on the book reads synchronously if the
 * source supports it, as `fileRules` does. In that case, creating the limiter throws an error with all problems of
 * the service's rules. If the source does not support it, the book or the limiter must define what applies until the
 * first load succeeds: `defaultRules` or `onRulesMissing`.
 *
 * @example
 * ```ts
 * import { createLimiter } from "@sluice/core"
 * import { createRuleBook, staticRules } from "@sluice/rules"
 *
 * const book = createRuleBook({ source: staticRules([{ field: "ip", limit: 100, window: "1 minute" }]) })
 * const checkout = createLimiter({ service: "checkout", rules: book })
 * const search = createLimiter({ service: "search", rules: book })
 * await book.ready()
 * ```
 * @throws {@link InvalidOptionError} with every problem of the options.
 */
export function createRuleBook(options: RuleBookOptions): RuleBook {
  return new OpenBook(parseBookOptions(options))
}

/**
 * The book behind the interface, with additional methods for its readers and its list. The parts of a book work as
 * follows:
 *
 * - Each service has its rules (`service-rules`), which keep the last valid version, and one loader
 *   (`loader`).
 * - The loader decides when to load again. The loader is kept while limiters follow the service and no list contains
 *   it. The loader rests while the list loads the service (`list`), or while the name is only looked up (`lookups`).
 * - Each load passes its result to the rules, which accept or reject it as a whole.
 * - Changes and failures are reported to limiters, listeners and the log (`reporter`).
 */
export class OpenBook implements RuleBook, ListedServices {
  readonly name: string
  readonly coreVersion: string = VERSION
  readonly readsSynchronously: boolean
  readonly untilLoaded: UntilLoaded | undefined
  readonly options: ParsedBookOptions
  readonly reporter: Reporter
  /** Opened services and, with "all", the services of the list. */
  readonly followed: Map<string, ServiceRules> = new Map()
  readonly #lookups: Lookups
  /** Loads the list of all services; undefined if services are loaded by name. */
  readonly #list: Loader | undefined
  /** True if the whole list was read at least once. */
  #isListRead: boolean
  readonly #stopWatching: (() => void) | undefined
  #isClosed = false

  constructor(options: ParsedBookOptions) {
    const { name, source, untilLoaded, isListed } = options
    this.name = name
    this.readsSynchronously = source.loadSync !== undefined
    this.untilLoaded = untilLoaded
    this.options = options
    this.reporter = new Reporter(options)
    this.#lookups = new Lookups(options, (service) => this.#create(service))
    this.#isListRead = !isListed
    if (isListed) {
      this.#list = new Loader(options, {
        service: undefined,
        load: (load) => loadList(this, load),
        onError: (error) => {
          for (const { loader } of this.followed.values()) loader.release(error)
          this.reporter.failed(error, this.#all, undefined)
        },
        onStale: (ageMs) => this.reporter.stale(ageMs, this.#all, undefined),
      })
    }
    // Watch before loading; otherwise a change between the load and the watch would be missed.
    this.#stopWatching = source.watch?.(() => {
      this.#lookups.expire()
      for (const loader of this.#loaders) loader.reload()
    })
    this.#list?.keep()
  }

  on<Name extends keyof RuleBookEvents>(name: Name, listener: (...args: RuleBookEvents[Name]) => void): void {
    this.reporter.events.on(name, listener)
  }

  off<Name extends keyof RuleBookEvents>(
    name: Name,
    listener: (...args: RuleBookEvents[Name]) => void,
  ): void {
    this.reporter.events.off(name, listener)
  }

  rulesOf(service: string): Edition | undefined {
    const rules = this.#get(service)
    if (rules !== undefined) return rules.known
    // Do not load single names while the list is about to be loaded.
    return this.#isListRead ? this.#lookups.read(service) : undefined
  }

  async find(service: string, options?: SignalOption): Promise<Edition | undefined> {
    this.#requireOpen()
    return keepingAlive(this.#find(service, startCall(options).signal))
  }

  statusOf(service: string): RulesStatus {
    const rules = this.#get(service) ?? this.#lookups.get(service)
    const isListed = rules?.isFollowed === true && !rules.loader.isKept
    const loader = isListed ? (this.#list ?? rules.loader) : rules?.loader
    const { version, problems = [] } = rules?.edition ?? {}
    const { loadedAtMs, isStale = false, error = rules?.rejection } = loader ?? {}
    return {
      ...(version !== undefined && { version }),
      ...(loadedAtMs !== undefined && { loadedAtMs }),
      ageMs: loadedAtMs === undefined ? Number.POSITIVE_INFINITY : this.options.timing.now() - loadedAtMs,
      isStale,
      isRejected: error !== undefined && isRejection(error),
      problems,
      ...(error !== undefined && { error }),
    }
  }

  async ready(options?: ReadyOptions): Promise<void> {
    this.#requireOpen()
    await keepingAlive(this.#ready(startCall(options)))
  }

  async refresh(options?: RefreshOptions): Promise<void> {
    this.#requireOpen()
    const { service, signal } = startCall(options)
    const refreshed = service === undefined ? this.#refreshAll() : this.#refreshOne(service)
    await keepingAlive(unlessAborted(refreshed, signal))
  }

  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#stopWatching?.()
    const error = closed()
    this.#list?.close(error)
    for (const rules of this.#all) rules.close(error)
    this.#lookups.close()
    this.reporter.close()
  }

  open(service: string, reader: RulesReader): OpenedRules {
    return new ServiceReading(this, service, reader)
  }

  /**
   * Follows a service for a reader and passes it the current version immediately, if there is one. A source that can
   * load synchronously always has a version. Throws {@link ClosedError}, RuleSourceError if the synchronous load
   * fails, and InvalidRuleError if any rule of the service is invalid.
   */
  enter(service: string, follower: ServiceFollower): ServiceRules {
    this.#requireOpen()
    const rules = this.follow(service)
    const { edition, loader } = rules
    if (this.readsSynchronously) {
      if (edition === undefined) loader.keepFrom((number) => this.#loadSync(rules, number))
      else if (edition.problems.length > 0) throw new InvalidRuleError(edition.problems)
    }
    rules.readers.add(follower)
    if (rules.edition !== undefined) follower.onEdition(rules.edition, "loaded")
    if (!loader.isKept && !rules.isListed && this.#isListRead) loader.keep()
    return rules
  }

  /**
   * Removes the reader, so that it receives no more reports. A service without readers is no longer followed, unless
   * the list contains it.
   */
  leave(service: string, follower: ServiceFollower): void {
    const rules = this.followed.get(service)
    rules?.readers.delete(follower)
    if (rules === undefined || rules.readers.size > 0) return
    rules.loader.release()
    if (rules.isListed) return
    rules.close()
    this.unfollow(rules)
  }

  follow(service: string): ServiceRules {
    const followed = this.followed.get(service)
    if (followed !== undefined) return followed
    const rules = this.#lookups.remove(service) ?? this.#create(service)
    rules.follow()
    this.followed.set(service, rules)
    return rules
  }

  unfollow(rules: ServiceRules): void {
    rules.unfollow()
    this.followed.delete(rules.service)
  }

  take(rules: ServiceRules, load: number, found: LoadedRules | LoadFailure, isStrict = false): void {
    const change = rules.take(load, found, isStrict)
    if (change === undefined) return
    // Do not report the service: since then, the list has loaded and reported it.
    if ((this.followed.get(rules.service) ?? rules) !== rules) return
    // Do not emit an event for a made-up name without rules.
    if (change.before === undefined && rules.known === undefined && rules.readers.size === 0) return
    this.reporter.changed(rules, change)
  }

  onListRead(): void {
    this.#isListRead = true
    this.reporter.listLoaded()
  }

  get #all(): readonly ServiceRules[] {
    return [...this.followed.values()]
  }

  /**
   * The loaders that load periodically. The list comes last, so that its load has the highest number and also settles
   * the waits for its services.
   */
  get #loaders(): readonly Loader[] {
    const own = this.#all.map(({ loader }) => loader).filter(({ isKept }) => isKept)
    return this.#list === undefined ? own : [...own, this.#list]
  }

  #get(service: string): ServiceRules | undefined {
    requireService(service)
    return this.followed.get(service)
  }

  #create(service: string): ServiceRules {
    return new ServiceRules(
      service,
      (rules) =>
        new Loader(this.options, {
          service,
          load: (load) => {
            const loaded = this.#load(rules, load)
            return rules.isFollowed ? loaded : this.#lookups.count(rules, load, loaded)
          },
          onError: (error) => this.reporter.failed(error, [rules], service),
          onStale: (ageMs) => this.reporter.stale(ageMs, [rules], service),
        }),
    )
  }

  /** Loads the rules of one service by its name. Rejects with the reason if they are not in force afterwards. */
  async #load(rules: ServiceRules, { number, fresh, loading }: Load): Promise<void> {
    const { source, name, timing } = this.options
    const { service } = rules
    const read = async () => source.load(service, { signal: loading.signal, fresh })
    const found = await inTime(read(), loading, timing, service)
    this.take(rules, number, requireLoaded(found, "load()", name))
    this.reporter.loaded(rules)
  }

  #loadSync(rules: ServiceRules, number: number): void {
    const { source, name } = this.options
    const { service } = rules
    try {
      const found = (source as Required<typeof source>).loadSync(service)
      const { otherProblems = [], ...loaded } = requireLoaded(found, "loadSync()", name)
      this.take(rules, number, loaded, true)
      this.reporter.othersRejected(otherProblems)
    } catch (error) {
      throw loadError(service, error)
    }
  }

  async #find(service: string, signal: AbortSignal | undefined): Promise<Edition | undefined> {
    await this.#list?.ready({ signal })
    const rules = this.#get(service)
    if (rules === undefined) return unlessAborted(this.#lookups.find(service), signal)
    await rules.ready({ signal })
    return rules.known
  }

  async #ready(options: ReadyOptions): Promise<void> {
    // Without a list, do not await anything here, because the book could be closed in the meantime.
    if (this.#list !== undefined) await this.#list.ready(options)
    const read = this.#all.filter(({ readers }) => readers.size > 0)
    await Promise.all(read.map((rules) => rules.ready(options)))
  }

  async #refreshAll(): Promise<void> {
    const { found } = this.#lookups
    this.#lookups.expire()
    await Promise.all(this.#loaders.map((loader) => loader.refresh()))
    // Reload these names after the list, because the list may contain some of them.
    await this.#lookups.refreshAll(found)
  }

  async #refreshOne(service: string): Promise<void> {
    const rules = this.#get(service)
    await (rules === undefined ? this.#lookups.refresh(service) : rules.loader.refresh())
  }

  #requireOpen(): void {
    if (this.#isClosed) throw closed()
  }
}
