import { ClosedError } from "../../ground/errors.ts"
import { ignore, Slices } from "../../ground/time.ts"
import type { FoundRules, LoadedRules, RuleSource } from "../source.ts"
import type { Announcer } from "./announcer.ts"
import { requireLoaded } from "./loaded.ts"
import type { ListAll, LoadSync } from "./options.ts"
import { type Found, loadError, NOTHING } from "./rule-snapshot.ts"
import type { Page } from "./service-rules.ts"
import { inTime, type Timing } from "./timing.ts"

/** Stands for rules that a page already has, and does not read again. */
const UNREAD: LoadedRules = { rules: [], problems: [] }

export interface LoadsOptions {
  readonly source: RuleSource
  /** What messages call it. */
  readonly name: string
  readonly timing: Timing
  /** Services that are followed. A list adds those that it has, and takes out those that it has no longer. */
  readonly pages: Map<string, Page>
  readonly announcer: Announcer
  /** The page of a service that comes to be followed. */
  readonly pageOf: (service: string) => Page
  /** Asks by its name for a service that a limiter follows and that is not in the list. */
  readonly confirm: (page: Page, fresh: boolean) => Promise<void>
}

/** Loads of any kind, and what each brings into the pages: what an earlier one has read never replaces what a later one has. */
export class Loads {
  readonly #options: LoadsOptions
  #begun = 0

  constructor(options: LoadsOptions) {
    this.#options = options
  }

  /** Loads the rules of one service. Rejects with why they are not in force. */
  async byName(page: Page, loading: AbortController, fresh: boolean): Promise<void> {
    const { source, name, timing } = this.#options
    const { service } = page
    this.#begun += 1
    const load = this.#begun
    const read = async () => source.load(service, { signal: loading.signal, fresh })
    try {
      const answer = await inTime(read(), loading, timing, (error) => loadError(service, error))
      const loaded = requireLoaded(answer, "load()", name)
      this.#take(page, load, { stamp: loaded.stamp, read: () => loaded })
      this.#options.announcer.loaded(page, this.#options.pages.get(service) === page)
    } catch (error) {
      if (error instanceof ClosedError) throw error
      const failure = loadError(service, error)
      page.fail(failure)
      throw failure
    }
  }

  /**
   * Loads the rules of one service synchronously. Throws RuleSourceError if they cannot be read, and InvalidRuleError if any
   * of them is invalid.
   */
  sync(page: Page, loadSync: LoadSync): void {
    const { announcer, name } = this.#options
    this.#begun += 1
    try {
      const { otherProblems = [], ...loaded } = requireLoaded(loadSync(page.service), "loadSync()", name)
      this.#take(page, this.#begun, { stamp: loaded.stamp, read: () => loaded }, true)
      announcer.othersRejected(otherProblems)
    } catch (error) {
      throw loadError(page.service, error)
    }
  }

  /** Loads the list of all services. Rejects when it cannot be read to its end; a service whose rules are wrong keeps no other from its own. */
  async list(listAll: ListAll, loading: AbortController, fresh: boolean): Promise<void> {
    const { timing, pages, announcer, confirm } = this.#options
    this.#begun += 1
    const load = this.#begun
    const slices = new Slices()
    try {
      const take = (found: FoundRules) => this.#readListed(load, found)
      await readAll(listAll, loading, timing, take, fresh)
    } catch (error) {
      if (error instanceof ClosedError) throw error
      const failure = loadError(undefined, error)
      for (const page of pages.values()) page.fail(failure)
      throw failure
    }
    // Only a list that was read to its end says who is not in it.
    const asked: Promise<void>[] = []
    slices.begin()
    for (const page of pages.values()) {
      if (slices.isUsedUp) await slices.pause()
      loading.signal.throwIfAborted()
      if (page.takenFrom >= load) continue
      page.isListed = false
      if (page.readers.size > 0) asked.push(confirm(page, fresh))
      else {
        pages.delete(page.service)
        announcer.forget(page)
        this.#take(page, load, NOTHING)
      }
    }
    announcer.listLoaded()
    await Promise.all(asked)
  }

  /** Reads what is listed for a service if it is new, and takes it. */
  #readListed(load: number, found: FoundRules): void | Promise<void> {
    const { service, stamp } = found
    // Taken in the same turn, so the page still goes by the stamp alone.
    if (this.#options.pages.get(service)?.hasRead(stamp) === true) {
      return this.#takeListed(load, service, { stamp, read: () => UNREAD })
    }
    const take = (read: () => LoadedRules): void => this.#takeListed(load, service, { stamp, read })
    const fail = (error: unknown): void =>
      take(() => {
        throw error
      })
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

  #takeListed(load: number, service: string, found: Found): void {
    const { pages, pageOf, announcer, name } = this.#options
    let page = pages.get(service)
    if (page === undefined) {
      page = pageOf(service)
      pages.set(service, page)
    }
    page.isListed = true
    try {
      const read = () => requireLoaded(found.read(), "read()", name)
      this.#take(page, load, { stamp: found.stamp, read })
      announcer.loaded(page, true)
    } catch (error) {
      const failure = loadError(service, error)
      announcer.failed(failure, service, [page])
      page.fail(failure)
    }
    page.loop?.end()
    page.loop = undefined
  }

  #take(page: Page, load: number, found: Found, isStrict = false): void {
    const turn = page.take(load, found, isStrict)
    if (turn === undefined) return
    // The list has brought it in meanwhile, and tells of it.
    if ((this.#options.pages.get(page.service) ?? page) !== page) return
    // A name that somebody made up is no news.
    if (turn.before === undefined && page.known === undefined && page.readers.size === 0) return
    this.#options.announcer.turned(page, turn)
  }
}

/**
 * Calls `take` with what is stored for each service, giving requests their turn in between. Rejects when a page does
 * not come, or not within ten seconds, and when `loading` is aborted; what was taken by then stays taken. `fresh`: what
 * is stored now.
 */
async function readAll(
  listAll: ListAll,
  loading: AbortController,
  timing: Timing,
  take: (found: FoundRules) => void | Promise<void>,
  fresh = false,
): Promise<void> {
  const slices = new Slices()
  let pages: AsyncIterator<readonly FoundRules[]> | undefined
  const nextPage = async (): Promise<IteratorResult<readonly FoundRules[]>> => {
    pages ??= listAll({ signal: loading.signal, fresh })[Symbol.asyncIterator]()
    return pages.next()
  }
  try {
    for (;;) {
      const { done, value } = await inTime(nextPage(), loading, timing, (error) =>
        loadError(undefined, error),
      )
      if (done === true) return
      slices.begin()
      for (const found of value) {
        if (slices.isUsedUp) await slices.pause()
        loading.signal.throwIfAborted()
        const taking = take(found)
        if (taking === undefined) continue
        await taking
        slices.begin()
      }
    }
  } catch (error) {
    // Nobody waits for it: a source that hangs would not answer this either.
    const end = async () => pages?.return?.()
    end().catch(ignore)
    throw error
  }
}
