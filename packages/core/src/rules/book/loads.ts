import { ClosedError, type Problem, RuleSourceError } from "../../ground/errors.ts"
import { show } from "../../ground/show.ts"
import { ignore, Slices } from "../../ground/time.ts"
import type { FoundRules, LoadedRules, RuleSource } from "../source.ts"
import type { Announcer } from "./announcer.ts"
import type { Load } from "./loader.ts"
import type { ListAll, LoadSync } from "./options.ts"
import { loadError, type SourceRules } from "./rule-snapshot.ts"
import type { ServiceRules } from "./service-rules.ts"
import { inTime, type Timing } from "./timing.ts"

export interface LoadsOptions {
  readonly source: RuleSource
  /** What messages call it. */
  readonly name: string
  readonly timing: Timing
  readonly announcer: Announcer
  /** Returns the rules of a service that is followed. */
  readonly followed: (service: string) => ServiceRules | undefined
}

/** Reads the source, and brings what each load has read into the rules of its services. */
export class Loads {
  readonly #options: LoadsOptions

  constructor(options: LoadsOptions) {
    this.#options = options
  }

  /** Loads the rules of one service. Rejects with why they are not in force. */
  async byName(rules: ServiceRules, { number, fresh, loading }: Load): Promise<void> {
    const { source, name, timing } = this.#options
    const { service } = rules
    const read = async () => source.load(service, { signal: loading.signal, fresh })
    try {
      const answer = await inTime(read(), loading, timing, (error) => loadError(service, error))
      const loaded = requireLoaded(answer, "load()", name)
      this.take(rules, number, { stamp: loaded.stamp, read: () => loaded })
      this.#options.announcer.loaded(rules)
    } catch (error) {
      if (loading.signal.aborted && error instanceof ClosedError) throw error
      const failure = loadError(service, error)
      rules.fail(failure)
      throw failure
    }
  }

  /**
   * Loads the rules of one service synchronously. Throws RuleSourceError if they cannot be read, and InvalidRuleError if any
   * of them is invalid.
   */
  sync(rules: ServiceRules, loadSync: LoadSync, number: number): void {
    const { announcer, name } = this.#options
    try {
      const { otherProblems = [], ...loaded } = requireLoaded(loadSync(rules.service), "loadSync()", name)
      this.take(rules, number, { stamp: loaded.stamp, read: () => loaded }, true)
      announcer.othersRejected(otherProblems)
    } catch (error) {
      throw loadError(rules.service, error)
    }
  }

  /** Takes what a load has read of a service, and announces what has changed. Throws why it is rejected. */
  take(rules: ServiceRules, load: number, found: SourceRules, isStrict = false): void {
    const change = rules.take(load, found, isStrict)
    if (change === undefined) return
    // The list has brought in the service meanwhile, and announces it.
    if ((this.#options.followed(rules.service) ?? rules) !== rules) return
    // A name that somebody made up is no news.
    if (change.before === undefined && rules.known === undefined && rules.readers.size === 0) return
    this.#options.announcer.changed(rules, change)
  }
}

/**
 * Calls `take` with what is stored for each service, giving requests their turn in between. Rejects when a page does
 * not come, or not within ten seconds, and when `loading` is aborted; what was taken by then stays taken. `fresh`: what
 * is stored now.
 */
export async function readAll(
  listAll: ListAll,
  { loading, fresh }: Load,
  timing: Timing,
  take: (found: FoundRules) => void | Promise<void>,
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

/**
 * Returns what a source that others wrote has loaded. Throws RuleSourceError if it has another shape. `call` and `name` are what
 * the message calls the method and the source.
 */
export function requireLoaded<Loaded extends LoadedRules>(value: Loaded, call: string, name: string): Loaded {
  const { rules, problems }: Partial<LoadedRules> = value ?? {}
  // Rules that are not a list are a problem of the edition, which the parser reports.
  if (rules !== undefined && Array.isArray(problems) && problems.every(isProblem)) return value
  if (value instanceof Promise) {
    value.catch(ignore)
    throw new RuleSourceError(
      `${call} of ${name} must return at once, and returned a promise: leave it out if it cannot`,
    )
  }
  throw new RuleSourceError(
    `${call} of ${name} must return { rules, problems }, a list of rules and a list of problems, and returned ${show(value)}`,
  )
}

function isProblem(value: unknown): boolean {
  const { path, message }: Partial<Problem> = value ?? {}
  return typeof path === "string" && typeof message === "string"
}
