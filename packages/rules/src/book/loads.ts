import { ClosedError, type Problem, RuleSourceError } from "@sluice/core"
import { show } from "@sluice/core/kit"
import { ignore, Slices } from "@sluice/core/rules"
import type { FoundRules, LoadedRules } from "../source.ts"
import type { Announcer } from "./announcer.ts"
import type { Load } from "./loader.ts"
import type { ListAll, LoadSync, ParsedBookOptions } from "./options.ts"
import { type LoadFailure, loadError } from "./rule-snapshot.ts"
import type { ServiceRules } from "./service-rules.ts"
import { inTime, type Timing } from "./timing.ts"

/** Reads the source and passes the results to the rules of its services. */
export class Loads {
  readonly #options: ParsedBookOptions
  readonly #announcer: Announcer
  readonly #followed: (service: string) => ServiceRules | undefined

  /** Creates the loads. `followed` returns the rules of a followed service. */
  constructor(
    options: ParsedBookOptions,
    announcer: Announcer,
    followed: (service: string) => ServiceRules | undefined,
  ) {
    this.#options = options
    this.#announcer = announcer
    this.#followed = followed
  }

  /** Loads the rules of one service. Rejects with the reason if they are not in force afterwards. */
  async byName(rules: ServiceRules, { number, fresh, loading }: Load): Promise<void> {
    const { source, name, timing } = this.#options
    const { service } = rules
    const read = async () => source.load(service, { signal: loading.signal, fresh })
    try {
      const answer = await inTime(read(), loading, timing, (error) => loadError(service, error))
      this.take(rules, number, requireLoaded(answer, "load()", name))
      this.#announcer.loaded(rules)
    } catch (error) {
      if (loading.signal.aborted && error instanceof ClosedError) throw error
      const failure = loadError(service, error)
      rules.fail(failure)
      throw failure
    }
  }

  /**
   * Loads the rules of one service synchronously. Throws RuleSourceError if they cannot be read. Throws
   * InvalidRuleError if any of them is invalid.
   */
  sync(rules: ServiceRules, loadSync: LoadSync, number: number): void {
    const { name } = this.#options
    try {
      const { otherProblems = [], ...loaded } = requireLoaded(loadSync(rules.service), "loadSync()", name)
      this.take(rules, number, loaded, true)
      this.#announcer.othersRejected(otherProblems)
    } catch (error) {
      throw loadError(rules.service, error)
    }
  }

  /** Takes what a load has read for a service and announces the change. Throws the reason of a rejection. */
  take(rules: ServiceRules, load: number, found: LoadedRules | LoadFailure, isStrict = false): void {
    const change = rules.take(load, found, isStrict)
    if (change === undefined) return
    // The list has brought in the service since then and announces it.
    if ((this.#followed(rules.service) ?? rules) !== rules) return
    // A made-up name without rules is not worth an event.
    if (change.before === undefined && rules.known === undefined && rules.readers.size === 0) return
    this.#announcer.changed(rules, change)
  }
}

/**
 * Calls `take` with the stored rules of each service and lets requests run in between. Rejects if a page fails or takes
 * longer than ten seconds, and if `loading` is aborted. Rules that were taken before stay taken. With `fresh`, the
 * source returns what is stored now.
 */
export async function readAll(
  listAll: ListAll,
  { loading, fresh }: Load,
  timing: Timing,
  take: (found: FoundRules) => Promise<void>,
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
        await take(found)
      }
    }
  } catch (error) {
    // Do not wait for the end: a source that hangs would not answer this call either.
    const end = async () => pages?.return?.()
    end().catch(ignore)
    throw error
  }
}

/**
 * Returns the value that a third-party source has loaded. Throws RuleSourceError if it has another shape. `call` and
 * `name` name the method and the source in the message.
 */
export function requireLoaded<Loaded extends LoadedRules>(value: Loaded, call: string, name: string): Loaded {
  const { rules, problems }: Partial<LoadedRules> = value ?? {}
  // Rules that are not a list are a problem of the edition, which the parser reports.
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
