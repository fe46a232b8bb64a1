import { ClosedError } from "../errors.ts"
import { Announcer } from "./book/announcer.ts"
import { LoadLoop } from "./book/load-loop.ts"
import { Loads } from "./book/loads.ts"
import { Lookups } from "./book/lookups.ts"
import {
  DEFAULT_POLL_MS,
  type ParsedBookOptions,
  parseBookOptions,
  type RuleBookOptions,
} from "./book/options.ts"
import { Page, type PageReader } from "./book/page.ts"
import { statusOf } from "./book/status.ts"
import { held, ignore, unlessAborted } from "./book/timing.ts"
import type {
  Edition,
  ReadyOptions,
  RefreshOptions,
  RuleBook,
  RuleBookEvents,
  RulesStatus,
} from "./rule-book.ts"

/**
 * Opens a rule book on a source, for several limiters or for a process that decides for many services. A limiter that is
 * given a source opens one of its own.
 *
 * It loads at once, then at intervals, when the source says that something changed, and after a failed load at growing
 * intervals from half a second to half a minute, all of them random by some part so that many processes do not ask
 * together. A load without an answer for ten seconds is a failed one. Rules of a service are swapped as a whole; good
 * ones are never given up for a failed load, nor for one in which every rule is wrong. It keeps no process alive, unless
 * somebody waits for `ready`, `refresh` or `find`.
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

/** A page of a book that a limiter has opened: the service is followed until it is closed. */
export interface OpenedPage {
  /** Undefined until the first load. */
  readonly edition: Edition | undefined
  /** Resolves when the first load has succeeded; see RuleBook. */
  ready(options: ReadyOptions): Promise<void>
}

/** The book behind the interface, with what a limiter needs of it besides. */
export class OpenBook implements RuleBook {
  readonly #options: ParsedBookOptions
  readonly #announcer: Announcer
  /** Services that are followed: those that are opened, and with "all" those of the list. */
  readonly #pages = new Map<string, Page>()
  /** Loads the list of all services. */
  readonly #list: LoadLoop | undefined
  readonly #lookups: Lookups
  readonly #stopWatching: (() => void) | undefined
  readonly #loads: Loads
  readonly #closing = new AbortController()

  constructor(options: ParsedBookOptions) {
    this.#options = options
    const { name, logger, source, pollMs = DEFAULT_POLL_MS, maxUnknown, timing } = options
    this.#announcer = new Announcer(name, logger)
    this.#lookups = new Lookups({
      most: maxUnknown,
      intervalMs: pollMs,
      timing,
      staleAfterMs: options.staleAfterMs,
      load: (page, loading, fresh) => this.#loads.byName(page, loading, fresh),
      onError: (error, page) => this.#announcer.failed(error, page.service, [page]),
    })
    this.#loads = new Loads({
      source,
      timing,
      pages: this.#pages,
      announcer: this.#announcer,
      pageOf: (service) => this.#lookups.remove(service) ?? new Page(service),
      confirm: (page, fresh) => this.#confirm(page, fresh),
    })
    // Watching comes first: a change between the two would go unnoticed.
    this.#stopWatching = source.watch?.(() => this.#reload())
    const { listAll } = options
    if (listAll === undefined) return
    const pagesOf = () => [...this.#pages.values()]
    this.#list = this.#loop((loading, fresh) => this.#loads.list(listAll, loading, fresh), undefined, pagesOf)
    this.#list.reload()
  }

  get name(): string {
    return this.#options.name
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
    const page = this.#pages.get(service)
    if (page !== undefined) return page.known
    // What is about to be listed need not be asked for one by one.
    return this.#isListLoaded ? this.#lookups.read(service) : undefined
  }

  async find(
    service: string,
    { signal }: { readonly signal?: AbortSignal | undefined } = {},
  ): Promise<Edition | undefined> {
    this.#requireOpen()
    return held(this.#find(service, signal))
  }

  statusOf(service: string): RulesStatus {
    const page = this.#pages.get(service)
    const nowMs = this.#options.timing.now()
    if (page !== undefined) return statusOf(page, (page.loop ?? this.#list) as LoadLoop, nowMs)
    return statusOf(this.#lookups.pageOf(service), this.#lookups.standingOf(service), nowMs)
  }

  async ready(options: ReadyOptions = {}): Promise<void> {
    this.#requireOpen()
    await held(this.#ready(options))
  }

  async refresh({ service, signal }: RefreshOptions = {}): Promise<void> {
    this.#requireOpen()
    signal?.throwIfAborted()
    const refreshed = service === undefined ? this.#refreshAll() : this.#refreshOne(service)
    await held(unlessAborted(refreshed, signal))
  }

  close(): void {
    if (this.#closing.signal.aborted) return
    const error = closed()
    this.#closing.abort(error)
    this.#stopWatching?.()
    this.#list?.close()
    for (const page of this.#pages.values()) page.close(error)
    this.#lookups.close()
    this.#announcer.events.clear()
  }

  /** Follows a service for a reader, who is told at once where its rules are there. Throws {@link ClosedError}. */
  open(service: string, reader: PageReader): OpenedPage {
    this.#requireOpen()
    const page = this.#pages.get(service) ?? this.#lookups.remove(service) ?? new Page(service)
    this.#pages.set(service, page)
    page.readers.add(reader)
    if (page.edition !== undefined) reader.onEdition(page.edition, "loaded")
    if (page.loop === undefined && !page.isListed && this.#isListLoaded) this.#follow(page)
    return {
      get edition() {
        return page.edition
      },
      ready: async (options) => {
        this.#requireOpen()
        await page.ready(options)
      },
    }
  }

  /** The reader is told no more; a service that nobody reads is followed no longer, unless it is in the list. */
  leave(service: string, reader: PageReader): void {
    const page = this.#pages.get(service)
    page?.readers.delete(reader)
    if (page === undefined || page.readers.size > 0) return
    page.end()
    if (!page.isListed) this.#pages.delete(service)
  }

  async #find(service: string, signal: AbortSignal | undefined): Promise<Edition | undefined> {
    await this.#list?.ready({ signal })
    const page = this.#pages.get(service)
    if (page === undefined) return unlessAborted(this.#lookups.find(service), signal)
    await page.ready({ signal })
    return page.known
  }

  async #ready(options: ReadyOptions): Promise<void> {
    if (this.#list !== undefined) await this.#list.ready(options)
    this.#requireOpen()
    const read = [...this.#pages.values()].filter(({ readers }) => readers.size > 0)
    await Promise.all(read.map((page) => page.ready(options)))
  }

  get #isListLoaded(): boolean {
    return this.#list === undefined || this.#list.loadedAtMs !== undefined
  }

  #reload(): void {
    this.#lookups.expire()
    this.#list?.reload()
    for (const { loop } of this.#pages.values()) loop?.reload()
  }

  #follow(page: Page, fresh = false): LoadLoop {
    const { service } = page
    page.loop ??= this.#loop(
      (loading, isFresh) => this.#loads.byName(page, loading, isFresh),
      service,
      () => [page],
    )
    page.loop.reload(fresh)
    return page.loop
  }

  #loop(
    load: (loading: AbortController, fresh: boolean) => Promise<void>,
    service: string | undefined,
    pagesOf: () => readonly Page[],
  ): LoadLoop {
    const { pollMs, staleAfterMs, timing } = this.#options
    return new LoadLoop({
      load,
      pollMs,
      staleAfterMs,
      timing,
      onError: (error) => this.#announcer.failed(error, service, pagesOf()),
      onStale: (ageMs) => this.#announcer.stale(ageMs, service, pagesOf()),
    })
  }

  async #refreshAll(): Promise<void> {
    const { found } = this.#lookups
    this.#lookups.expire()
    const loops = this.#list === undefined ? [] : [this.#list]
    for (const { loop } of this.#pages.values()) if (loop !== undefined) loops.push(loop)
    await Promise.all(loops.map((loop) => loop.refresh({})))
    // After the list, which may have some of them.
    await this.#lookups.refreshAll(found)
  }

  async #refreshOne(service: string): Promise<void> {
    const page = this.#pages.get(service)
    if (page === undefined) return this.#lookups.refresh(service)
    const { loop } = page
    await loop?.refresh({})
    // A list that has the service by now may have been read before the call.
    if (loop !== undefined && (page.loop === loop || page.readers.size === 0)) return
    const loading = new AbortController()
    const stop = (): void => loading.abort(closed())
    this.#closing.signal.addEventListener("abort", stop, { once: true })
    try {
      await this.#loads.byName(page, loading, true)
    } finally {
      this.#closing.signal.removeEventListener("abort", stop)
    }
  }

  /** A service that a limiter follows and that is not in the list is asked for by its name: it may yet have rules. */
  async #confirm(page: Page, fresh: boolean): Promise<void> {
    if (page.loop === undefined) await this.#follow(page, fresh).ready({}).catch(ignore)
  }

  #requireOpen(): void {
    if (this.#closing.signal.aborted) throw closed()
  }
}

function closed(): ClosedError {
  return new ClosedError("The rule book is closed")
}
