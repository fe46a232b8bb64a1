import { AsyncResource } from "node:async_hooks"
import { held, unlessAborted } from "../../ground/time.ts"
import type {
  Edition,
  ReadyOptions,
  RefreshOptions,
  RuleBook,
  RuleBookEvents,
  RulesStatus,
  SignalOption,
} from "../rule-book.ts"
import { Announcer } from "./announcer.ts"
import { requireService, startCall } from "./call-start.ts"
import { Followed } from "./followed.ts"
import { Loader } from "./loader.ts"
import { Loads } from "./loads.ts"
import { Lookups } from "./lookups.ts"
import { type ParsedBookOptions, parseBookOptions, type RuleBookOptions } from "./options.ts"
import { isRejection } from "./rule-snapshot.ts"
import { type RulesReader, ServiceRules } from "./service-rules.ts"
import type { Timing } from "./timing.ts"
import type { UntilLoaded } from "./until-loaded.ts"
import { closed } from "./waiting-list.ts"

/**
 * Opens a rule book on a source, for several limiters or for a process that decides for many services. A limiter that is
 * given a source opens one of its own.
 *
 * It loads at once, then at intervals, when the source says that something changed, and after a failed load at growing
 * intervals from half a second to half a minute, all of them random by some part so that many processes do not ask
 * together. A load without an answer for ten seconds is a failed one. An edition of a service's rules is accepted as a whole or
 * not at all: while a load fails, or any rule of the edition is invalid, the previous edition stays in force. It keeps no process
 * alive, unless somebody waits for `ready`, `refresh` or `find`.
 *
 * The book itself reads nothing synchronously. If its source can (`fileRules`), creating a limiter on the book does, and
 * throws what is wrong with the rules of the limiter's service. If it cannot, the book or the limiter must say what applies
 * until the first load has succeeded: `defaultRules` or `onRulesMissing`.
 *
 * @example
 * ```ts
 * import { createLimiter, createRuleBook, staticRules } from "@sluice/core"
 *
 * const book = createRuleBook({ source: staticRules([{ field: "ip", limit: 100, window: "1 minute" }]) })
 * const checkout = createLimiter({ service: "checkout", rules: book })
 * const search = createLimiter({ service: "search", rules: book })
 * await book.ready()
 * ```
 * @throws {@link InvalidOptionError} with everything that is wrong with the options.
 */
export function createRuleBook(options: RuleBookOptions): RuleBook {
  return new OpenBook(parseBookOptions(options))
}

/** The rules of a service that a limiter has opened: the service is followed until it is closed. */
export interface OpenedRules {
  /** Undefined until the first load. */
  readonly edition: Edition | undefined
  /** Resolves when the first load has succeeded; see RuleBook. */
  ready(options: ReadyOptions): Promise<void>
}

/**
 * The book behind the interface, with what a limiter needs of it besides. Each service has its rules (`service-rules`), which keep
 * the last good edition, and one loader (`loader`), which decides when to load again. The loader is kept while the service is followed
 * and not in a list (`followed`); it rests while the name is only looked up (`lookups`). Each load reads the source (`loads`) and
 * brings what it has read into the rules, which take or reject it as a whole. What has changed or failed is reported to
 * limiters, listeners and the log (`announcer`).
 */
export class OpenBook implements RuleBook {
  readonly name: string
  /** Whether its source loads synchronously: a limiter has its rules as soon as it is created. */
  readonly isLocal: boolean
  /** What applies in its limiters until the first load; undefined if it does not say. */
  readonly untilLoaded: UntilLoaded | undefined
  readonly #timing: Timing
  readonly #announcer: Announcer
  readonly #followed: Followed
  readonly #lookups: Lookups
  readonly #stopWatching: (() => void) | undefined
  #isClosed = false

  constructor(options: ParsedBookOptions) {
    const { name, logger, source, timing } = options
    this.name = name
    this.isLocal = options.loadSync !== undefined
    this.untilLoaded = options.untilLoaded
    this.#timing = timing
    const announcer = new Announcer(name, logger, timing)
    this.#announcer = announcer
    const settings = { ...options, count: { begun: 0 }, outside: new AsyncResource("SluiceRuleBook") }
    const loaderOf = (rules: ServiceRules): Loader =>
      new Loader(settings, {
        load: (load) => (rules.isFollowed ? loads.byName(rules, load) : this.#lookups.load(rules, load)),
        onError: (error) => announcer.failed(error, rules),
        onStale: (ageMs) => announcer.stale(ageMs, rules.service, [rules]),
      })
    const create = (service: string) => new ServiceRules(service, loaderOf)
    const followed = (service: string) => this.#followed.get(service)
    const loads = new Loads({ source, name, timing, announcer, followed })
    this.#lookups = new Lookups({ ...options, loads, create })
    const claim = (service: string) => this.#lookups.remove(service) ?? create(service)
    this.#followed = new Followed({ ...options, loads, announcer, settings, claim })
    // Watching comes first: a change between the two would go unnoticed.
    this.#stopWatching = source.watch?.(() => {
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
    // What is about to be listed need not be asked for one by one.
    return this.#followed.isListLoaded ? this.#lookups.read(service) : undefined
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
      this.#timing.now(),
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

  /**
   * Follows a service for a reader, which gets the edition at once if there is one. Throws {@link ClosedError}, and for a local
   * source what is wrong with the rules of the service.
   */
  open(service: string, reader: RulesReader): OpenedRules {
    this.#requireOpen()
    const rules = this.#followed.open(service, reader)
    return {
      get edition() {
        return rules.edition
      },
      ready: async (options) => {
        this.#requireOpen()
        await rules.ready(options)
      },
    }
  }

  /** The reader is told no more. */
  leave(service: string, reader: RulesReader): void {
    this.#followed.leave(service, reader)
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
    // After the list, which may have some of them.
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

/** How far the rules are to be trusted, by what is known of the loads that keep them up to date. */
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
