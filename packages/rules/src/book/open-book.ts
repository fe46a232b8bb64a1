import type { RulesStatus } from "@sluice/core"
import {
  type Edition,
  held,
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
import { Announcer } from "./announcer.ts"
import { Followed } from "./followed.ts"
import { Loader } from "./loader.ts"
import { Loads } from "./loads.ts"
import { Lookups } from "./lookups.ts"
import { type ParsedBookOptions, parseBookOptions, type RuleBookOptions } from "./options.ts"
import { isRejection } from "./rule-snapshot.ts"
import { ServiceReading } from "./service-reading.ts"
import { type ServiceFollower, ServiceRules } from "./service-rules.ts"
import { closed } from "./waiting-list.ts"

/**
 * Opens a rule book on a source, for several limiters or for a process that decides for many services. With
 * `fileRules(…)` or `liveRules(source)`, each limiter opens a book of its own.
 *
 * The book loads immediately, then at intervals, and when the source reports a change. After a failed load it retries with
 * a backoff from half a second to half a minute. All delays have a random part, so that many processes do not load
 * together. A load without an answer fails after ten seconds.
 *
 * An edition of a service's rules is accepted or rejected as a whole. While a load fails, or any rule of the edition is
 * invalid, the previous edition stays in force. A book does not keep the process alive, except while `ready`, `refresh`
 * or `find` is pending.
 *
 * The book itself never reads synchronously. If its source can (`fileRules`), creating a limiter on the book does. It
 * throws the problems of the service's rules. If the source cannot, the book or the limiter must define what applies
 * until the first load has succeeded: `defaultRules` or `onRulesMissing`.
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
 * The book behind the interface, with additional methods for limiters. It works as follows:
 *
 * - Each service has its rules (`service-rules`), which keep the last valid edition, and one loader (`loader`).
 * - The loader decides when to load again. It is kept while the service is followed and not in a list (`followed`), and
 *   rests while the name is only looked up (`lookups`).
 * - Each load reads the source (`loads`) and passes the result to the rules, which take or reject it as a whole.
 * - Changes and failures are reported to limiters, listeners and the log (`announcer`).
 */
export class OpenBook implements RuleBook {
  readonly name: string
  readonly options: ParsedBookOptions
  readonly #announcer: Announcer
  readonly #followed: Followed
  readonly #lookups: Lookups
  readonly #stopWatching: (() => void) | undefined
  #isClosed = false

  constructor(options: ParsedBookOptions) {
    this.name = options.name
    this.options = options
    const announcer = new Announcer(options)
    this.#announcer = announcer
    const loaderOf = (rules: ServiceRules): Loader =>
      new Loader(options, {
        load: (load) => (rules.isFollowed ? loads.byName(rules, load) : this.#lookups.load(rules, load)),
        onError: (error) => announcer.failed(error, rules),
        onStale: (ageMs) => announcer.stale(ageMs, rules.service, [rules]),
      })
    const create = (service: string) => new ServiceRules(service, loaderOf)
    const loads = new Loads(options, announcer, (service) => this.#followed.get(service))
    this.#lookups = new Lookups(options, loads, create)
    const claim = (service: string) => this.#lookups.remove(service) ?? create(service)
    this.#followed = new Followed(options, loads, announcer, claim)
    // Watch before loading; otherwise a change between the two would be missed.
    this.#stopWatching = options.source.watch?.(() => {
      this.#lookups.expire()
      this.#followed.reload()
    })
    this.#followed.start()
  }

  on<Name extends keyof RuleBookEvents>(name: Name, listener: (...args: RuleBookEvents[Name]) => void): void {
    this.#announcer.events.on(name, listener)
  }

  off<Name extends keyof RuleBookEvents>(
    name: Name,
    listener: (...args: RuleBookEvents[Name]) => void,
  ): void {
    this.#announcer.events.off(name, listener)
  }

  rulesOf(service: string): Edition | undefined {
    const rules = this.#followedRules(service)
    if (rules !== undefined) return rules.known
    // Do not load single names while the list is about to be loaded.
    return this.#followed.isListLoaded ? this.#lookups.read(service) : undefined
  }

  get coreVersion(): string {
    return VERSION
  }

  get readsSynchronously(): boolean {
    return this.options.loadSync !== undefined
  }

  get untilLoaded(): UntilLoaded | undefined {
    return this.options.untilLoaded
  }

  async find(service: string, options?: SignalOption): Promise<Edition | undefined> {
    this.#requireOpen()
    return held(this.#find(service, startCall(options).signal))
  }

  statusOf(service: string): RulesStatus {
    const followed = this.#followedRules(service)
    const rules = followed ?? this.#lookups.get(service)
    return statusOf(
      rules,
      followed === undefined ? rules?.loader : this.#followed.loaderOf(followed),
      this.options.timing.now(),
    )
  }

  async ready(options?: ReadyOptions): Promise<void> {
    this.#requireOpen()
    await held(this.#followed.ready(startCall(options)))
  }

  async refresh(options?: RefreshOptions): Promise<void> {
    this.#requireOpen()
    const { service, signal } = startCall(options)
    const refreshed = service === undefined ? this.#refreshAll() : this.#refreshOne(service)
    await held(unlessAborted(refreshed, signal))
  }

  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#stopWatching?.()
    this.#followed.close()
    this.#lookups.close()
    this.#announcer.close()
  }

  open(service: string, reader: RulesReader): OpenedRules {
    return new ServiceReading(this, service, reader)
  }

  /**
   * Follows a service and passes on the edition immediately, if there is one. Throws {@link ClosedError} and, for a local
   * source, the problems of the service's rules.
   */
  follow(service: string, follower: ServiceFollower): ServiceRules {
    this.#requireOpen()
    return this.#followed.open(service, follower)
  }

  /** Stops reporting to the follower. */
  leave(service: string, follower: ServiceFollower): void {
    this.#followed.leave(service, follower)
  }

  async #find(service: string, signal: AbortSignal | undefined): Promise<Edition | undefined> {
    await this.#followed.listReady({ signal })
    const rules = this.#followedRules(service)
    if (rules === undefined) return unlessAborted(this.#lookups.find(service), signal)
    await rules.ready({ signal })
    return rules.known
  }

  async #refreshAll(): Promise<void> {
    const { found } = this.#lookups
    this.#lookups.expire()
    await this.#followed.refreshAll()
    // Comes after the list, which may contain some of them.
    await this.#lookups.refreshAll(found)
  }

  async #refreshOne(service: string): Promise<void> {
    const rules = this.#followedRules(service)
    await (rules === undefined ? this.#lookups.refresh(service) : rules.loader.refresh())
  }

  #followedRules(service: string): ServiceRules | undefined {
    requireService(service)
    return this.#followed.get(service)
  }

  #requireOpen(): void {
    if (this.#isClosed) throw closed()
  }
}

/** Returns the status of the rules, from the loads that keep them up to date. */
function statusOf(rules: ServiceRules | undefined, loader: Loader | undefined, nowMs: number): RulesStatus {
  const { version, problems = [] } = rules?.edition ?? {}
  const { loadedAtMs, isStale = false, error = rules?.rejection } = loader ?? {}
  return {
    ...(version !== undefined && { version }),
    ...(loadedAtMs !== undefined && { loadedAtMs }),
    ageMs: loadedAtMs === undefined ? Number.POSITIVE_INFINITY : nowMs - loadedAtMs,
    isStale,
    isRejected: error !== undefined && isRejection(error),
    problems,
    ...(error !== undefined && { error }),
  }
}
