import { InvalidRuleError } from "../../ground/errors.ts"
import { ignore } from "../../ground/time.ts"
import type { ReadyOptions } from "../rule-book.ts"
import type { Announcer } from "./announcer.ts"
import { LoadLoop } from "./load-loop.ts"
import type { Loads } from "./loads.ts"
import type { LoadSync, ParsedBookOptions } from "./options.ts"
import type { Page, PageReader } from "./service-rules.ts"
import { closed } from "./waiting-list.ts"

export interface FollowedOptions
  extends Pick<ParsedBookOptions, "listAll" | "loadSync" | "pollMs" | "staleAfterMs" | "timing"> {
  /** What the loads bring their rules into, and the list its services. */
  readonly pages: Map<string, Page>
  readonly loads: Loads
  readonly announcer: Announcer
  /** The page of a service that comes to be followed. */
  readonly pageOf: (service: string) => Page
}

/**
 * Services whose rules are kept up to date: those that are opened, and with "all" those of the list. The list loads those
 * that it has; any other has a loop of its own.
 */
export class Followed {
  readonly #options: FollowedOptions
  /** Loads the list of all services. */
  readonly #list: LoadLoop | undefined
  readonly #closing = new AbortController()

  constructor(options: FollowedOptions) {
    this.#options = options
    const { listAll, loads, pages } = options
    if (listAll === undefined) return
    const pagesOf = () => [...pages.values()]
    this.#list = this.#loop((loading, fresh) => loads.list(listAll, loading, fresh), undefined, pagesOf)
  }

  pageOf(service: string): Page | undefined {
    return this.#options.pages.get(service)
  }

  /** What keeps the page up to date. */
  loopOf(page: Page): LoadLoop {
    return (page.loop ?? this.#list) as LoadLoop
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
    // Where there is nothing to wait for, not even for a turn, in which the book may be closed.
    if (this.#list !== undefined) await this.#list.ready(options)
    this.#closing.signal.throwIfAborted()
    const read = [...this.#options.pages.values()].filter(({ readers }) => readers.size > 0)
    await Promise.all(read.map((page) => page.ready(options)))
  }

  /**
   * Follows a service for a reader, which gets the edition at once if there is one. If the source can load synchronously,
   * there is one. Throws RuleSourceError if that load fails, and InvalidRuleError if any rule of the service is invalid.
   */
  open(service: string, reader: PageReader): Page {
    const { pages, pageOf, loadSync } = this.#options
    const page = pages.get(service) ?? pageOf(service)
    if (loadSync !== undefined) this.#requireSound(page, loadSync)
    pages.set(service, page)
    page.readers.add(reader)
    if (page.edition !== undefined) reader.onEdition(page.edition, "loaded")
    if (page.loop === undefined && !page.isListed && this.isListLoaded) this.#follow(page)
    return page
  }

  /** The reader is told no more; a service that nobody reads is followed no longer, unless it is in the list. */
  leave(service: string, reader: PageReader): void {
    const page = this.pageOf(service)
    page?.readers.delete(reader)
    if (page === undefined || page.readers.size > 0) return
    page.end()
    if (page.isListed) return
    this.#options.pages.delete(service)
    this.#options.announcer.forget(page)
  }

  /** A service that a limiter follows and that is not in the list is asked for by its name: it may yet have rules. */
  async confirm(page: Page, fresh: boolean): Promise<void> {
    if (page.loop === undefined) await this.#follow(page, fresh).ready({}).catch(ignore)
  }

  /** Loads all of it. */
  reload(): void {
    for (const loop of this.#loops) loop.reload()
  }

  /** Resolves when what loads have read that began after the call is in force. */
  async refreshAll(): Promise<void> {
    await Promise.all(this.#loops.map((loop) => loop.refresh()))
  }

  /** The same of one service. */
  async refresh(page: Page): Promise<void> {
    const { loop } = page
    await loop?.refresh()
    // A list that has the service by now may have been read before the call.
    if (loop !== undefined && (page.loop === loop || page.readers.size === 0)) return
    const loading = new AbortController()
    const stop = (): void => loading.abort(closed())
    this.#closing.signal.addEventListener("abort", stop, { once: true })
    try {
      await this.#options.loads.byName(page, loading, true)
    } finally {
      this.#closing.signal.removeEventListener("abort", stop)
    }
  }

  /** Nothing is loaded any more. Who waits is told so. */
  close(): void {
    const error = closed()
    this.#closing.abort(error)
    this.#list?.close()
    for (const page of this.#options.pages.values()) page.close(error)
  }

  get #loops(): readonly LoadLoop[] {
    const own = [...this.#options.pages.values()].flatMap(({ loop }) => loop ?? [])
    return this.#list === undefined ? own : [this.#list, ...own]
  }

  #requireSound(page: Page, loadSync: LoadSync): void {
    const { edition } = page
    if (edition === undefined) {
      const loop = page.loop ?? this.#loopFor(page)
      loop.loadSync(() => this.#options.loads.sync(page, loadSync))
      page.loop = loop
    } else if (edition.problems.length > 0) throw new InvalidRuleError(edition.problems)
  }

  #follow(page: Page, fresh = false): LoadLoop {
    page.loop ??= this.#loopFor(page)
    page.loop.reload(fresh)
    return page.loop
  }

  #loopFor(page: Page): LoadLoop {
    const { loads } = this.#options
    return this.#loop(
      (loading, isFresh) => loads.byName(page, loading, isFresh),
      page.service,
      () => [page],
    )
  }

  #loop(
    load: (loading: AbortController, fresh: boolean) => Promise<void>,
    service: string | undefined,
    pagesOf: () => readonly Page[],
  ): LoadLoop {
    const { pollMs, staleAfterMs, timing, announcer } = this.#options
    return new LoadLoop({
      load,
      pollMs,
      staleAfterMs,
      timing,
      onError: (error) => announcer.failed(error, service, pagesOf()),
      onStale: (ageMs) => announcer.stale(ageMs, service, pagesOf()),
    })
  }
}
