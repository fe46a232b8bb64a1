import { type Problem, RuleSourceError } from "@sluice/core"
import { show } from "@sluice/core/kit"
import { ignore, Slices } from "@sluice/core/rules"
import type { FoundRules, LoadedRules } from "../source.ts"
import { type LoadFailure, loadError, NOTHING } from "./edition.ts"
import type { Load, Loader } from "./loader.ts"
import type { ParsedBookOptions } from "./options.ts"
import type { Reporter } from "./reporter.ts"
import type { ServiceRules } from "./service-rules.ts"
import { inTime } from "./timing.ts"

/** The services of a book, as the loader of the list uses them. */
export interface ListedServices {
  readonly options: ParsedBookOptions
  readonly reporter: Reporter
  /** The services whose rules are kept up to date. */
  readonly followed: ReadonlyMap<string, ServiceRules>
  /** Returns the rules of a service, which are kept up to date from now on. */
  follow(service: string): ServiceRules
  unfollow(rules: ServiceRules): void
  /**
   * Applies the result of a load for a service, and reports the change. Throws the error of a rejection if the rules
   * are rejected.
   */
  take(rules: ServiceRules, load: number, found: LoadedRules | LoadFailure): void
  /** Called after the whole list was read. */
  onListRead(): void
}

/**
 * Loads the list of all services, and records which services it contains. Rejects if the list cannot be read
 * completely; pages that were read before the error stay in force. Invalid rules of one service do not affect the
 * others.
 */
export async function loadList(services: ListedServices, load: Load): Promise<void> {
  const { number, fresh, loading } = load
  await readPages(services.options, load, (found) => takeListed(services, number, found))
  // Only a complete list shows which services are not in it.
  const asked: Promise<void>[] = []
  const slices = new Slices()
  for (const rules of services.followed.values()) {
    if (slices.isUsedUp) await slices.pause()
    loading.signal.throwIfAborted()
    if (rules.takenFrom >= number) continue
    rules.isListed = false
    if (rules.readers.size > 0) asked.push(confirm(rules.loader, fresh))
    else {
      services.unfollow(rules)
      services.take(rules, number, NOTHING)
    }
  }
  services.onListRead()
  await Promise.all(asked)
}

/** Applies the listed rules of a service, and reads them first unless they are already known. */
async function takeListed(services: ListedServices, load: number, found: FoundRules): Promise<void> {
  const { service, stamp } = found
  const { options, reporter, followed } = services
  let loaded: LoadedRules | LoadFailure = { ...NOTHING, stamp }
  // Do not read known rules: nothing is awaited before they are applied, so their stamp cannot change in the
  // meantime.
  if (followed.get(service)?.hasRead(stamp) !== true) {
    try {
      loaded = { ...requireLoaded(await found.read(), "read()", options.name), stamp }
    } catch (error) {
      loaded = loadError(service, error)
    }
  }
  const rules = services.follow(service)
  rules.isListed = true
  let failure: LoadFailure | undefined
  try {
    services.take(rules, load, loaded)
    reporter.loaded(rules)
  } catch (error) {
    failure = loadError(service, error)
    reporter.failed(failure, [rules], service)
    rules.loader.release(failure)
  }
  rules.loader.rest(load, failure)
}

/**
 * Loads a service by its name if a limiter follows it but the list does not contain it. Such a service may have rules
 * nevertheless.
 */
async function confirm(loader: Loader, fresh: boolean): Promise<void> {
  if (loader.isKept) return
  loader.keep(fresh)
  await loader.ready({}).catch(ignore)
}

/**
 * Calls `take` with the stored rules of each service, and yields to requests between the calls. Rejects if a page
 * fails or takes longer than ten seconds, and if `loading` is aborted.
 */
async function readPages(
  { source, timing }: ParsedBookOptions,
  { loading, fresh }: Load,
  take: (found: FoundRules) => Promise<void>,
): Promise<void> {
  const slices = new Slices()
  let pages: AsyncIterator<readonly FoundRules[]> | undefined
  const nextPage = async (): Promise<IteratorResult<readonly FoundRules[]>> => {
    pages ??= (source as Required<typeof source>)
      .loadAll({ signal: loading.signal, fresh })
      [Symbol.asyncIterator]()
    return pages.next()
  }
  try {
    for (;;) {
      const { done, value } = await inTime(nextPage(), loading, timing, undefined)
      if (done === true) return
      slices.begin()
      for (const found of value) {
        if (slices.isUsedUp) await slices.pause()
        loading.signal.throwIfAborted()
        await take(found)
      }
    }
  } catch (error) {
    // Do not await the iterator's `return`, because a source that hangs would not respond to this call either.
    const end = async () => pages?.return?.()
    end().catch(ignore)
    throw error
  }
}

/**
 * Returns the value that a third-party source has loaded. Throws RuleSourceError if the value does not have the
 * expected shape. `call` and `name` name the method and the source in the message.
 */
export function requireLoaded<Loaded extends LoadedRules>(value: Loaded, call: string, name: string): Loaded {
  const { rules, problems }: Partial<LoadedRules> = value ?? {}
  // Do not reject rules that are not an array here, because the parser reports them as a problem of the version.
  if (rules !== undefined && Array.isArray(problems) && problems.every(isProblem)) return value
  if (value instanceof Promise) {
    value.catch(ignore)
    throw new RuleSourceError(
      `${call} of ${name} returned a promise, but must return the rules synchronously: change it, or leave it out`,
    )
  }
  throw new RuleSourceError(
    `${call} of ${name} must return { rules, problems }, a list of rules and a list of problems, but it returned ${show(value)}`,
  )
}

function isProblem(value: unknown): boolean {
  const { path, message }: Partial<Problem> = value ?? {}
  return typeof path === "string" && typeof message === "string"
}
