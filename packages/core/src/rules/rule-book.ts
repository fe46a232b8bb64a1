import { waitUnheld } from "../clock.ts"
import { ClosedError, InvalidRuleError, type Problem, RuleSourceError } from "../errors.ts"
import { parseRules } from "./parse-rule.ts"
import type { ParsedRule } from "./parsed-rule.ts"
import { show } from "./problems.ts"
import type { RuleSource } from "./source.ts"

/** The rules of a service as they stand since a load. */
export interface Edition {
  readonly rules: readonly ParsedRule[]
  /** What is wrong with the rules that were set aside. */
  readonly problems: readonly Problem[]
  /** Version of the stored document, where it has one. */
  readonly version?: number
}

/** What a rule book needs. */
export interface RuleBookOptions {
  readonly source: RuleSource
  readonly service: string
  /** Called with each edition before it becomes `current`. When it throws, the edition is not taken: a failed load. */
  onLoaded?(edition: Edition): void
  /** Called when a load failed, and the last good rules stay; once for an error that repeats itself. Must not throw. */
  onError?(error: RuleSourceError | InvalidRuleError): void
  /** Waits for so many milliseconds, or rejects when the signal is aborted. Default: a timer that holds no process. */
  readonly wait?: (ms: number, signal: AbortSignal) => Promise<void>
  /** A number from 0 to below 1. Default Math.random. */
  readonly random?: () => number
}

/** The rules of one service, held ready and kept up to date. */
export interface RuleBook {
  /** The rules now, undefined until the first load succeeded. Reading it reads nothing else. */
  readonly current: Edition | undefined
  /**
   * Resolves when there are rules. While there are none, rejects with the error of the load under way or, between two,
   * of the next one; so a caller who wants to wait longer asks again. Rejects with the signal's reason when aborted,
   * with ClosedError when closed.
   */
  ready(options?: { readonly signal?: AbortSignal | undefined }): Promise<void>
  /** Stops watching and loading. The source stays open: who made it closes it. */
  close(): void
}

/** A load that has not answered by then is a failed one: a source that hangs would never be asked again. */
export const LOAD_TIMEOUT_MS = 10_000
const FIRST_RETRY_MS = 500
const LAST_RETRY_MS = 30_000

/**
 * Opens a rule book and begins to load. It loads again when the source says that something changed, and after a
 * failed load, at growing intervals from half a second to half a minute, each random by half so that many processes
 * do not ask together. A load without an answer for ten seconds is a failed one.
 *
 * Good rules are never given up for a failed load, nor for one in which every rule is wrong. A load that began earlier
 * never replaces the answer of a later one.
 */
export function ruleBook(options: RuleBookOptions): RuleBook {
  const { source, service, onLoaded, onError, wait = waitUnheld, random = Math.random } = options
  const closing = new AbortController()
  let waiting: Waiting[] = []
  let current: Edition | undefined
  /** Loads that began, and the latest of them that is settled. */
  let begun = 0
  let settled = 0
  let failures = 0
  let lastError = ""

  const settle = (error?: Error): void => {
    const told = waiting
    waiting = []
    for (const { resolve, reject } of told) {
      if (error === undefined) resolve()
      else reject(error)
    }
  }
  const apply = (edition: Edition): void => {
    onLoaded?.(edition)
    current = edition
    failures = 0
    lastError = ""
    settle()
  }
  const fail = (error: RuleSourceError | InvalidRuleError, load: number): void => {
    failures += 1
    if (error.message !== lastError) onError?.(error)
    lastError = error.message
    settle(error)
    void retry(load)
  }
  const retry = async (load: number): Promise<void> => {
    const longest = Math.min(LAST_RETRY_MS, FIRST_RETRY_MS * 2 ** Math.min(failures - 1, 16))
    try {
      await wait(longest * (1 - random() / 2), closing.signal)
    } catch {
      // Aborted, or there is no way to wait: asking again at once would be asking without end.
      return
    }
    // A load that began meanwhile makes this one unnecessary, or retries by itself.
    if (load === begun) await reload()
  }
  /** The load, or the error that it did not come in time: its signal is aborted then, or when the book is closed. */
  const loadInTime = async (): Promise<Edition | RuleSourceError | InvalidRuleError> => {
    const [loading, timer] = [new AbortController(), new AbortController()]
    const end = (): void => {
      loading.abort(closing.signal.reason)
      timer.abort()
    }
    closing.signal.addEventListener("abort", end, { once: true })
    const tooLate = async (): Promise<RuleSourceError> => {
      try {
        await wait(LOAD_TIMEOUT_MS, timer.signal)
      } catch {
        // The load has ended first, or there is no way to wait: then it may take as long as it likes.
        return new Promise(() => undefined)
      }
      const error = unusable(service, new Error(`no answer within ${LOAD_TIMEOUT_MS / 1000} seconds`))
      loading.abort(error)
      return error
    }
    const outcome = await Promise.race([loadEdition(source, service, loading.signal), tooLate()])
    closing.signal.removeEventListener("abort", end)
    timer.abort()
    return outcome
  }
  const reload = async (): Promise<void> => {
    if (closing.signal.aborted) return
    begun += 1
    const load = begun
    const outcome = await loadInTime()
    if (closing.signal.aborted || load < settled) return
    settled = load
    if (outcome instanceof Error) return fail(outcome, load)
    try {
      apply(outcome)
    } catch (error) {
      fail(unusable(service, error), load)
    }
  }

  // Watching comes first: a change between the two would go unnoticed.
  const stopWatching = source.watch?.(() => void reload())
  void reload()
  return {
    get current() {
      return current
    },
    ready({ signal } = {}) {
      if (closing.signal.aborted) return Promise.reject(closed())
      if (signal?.aborted) return Promise.reject(signal.reason)
      if (current !== undefined) return Promise.resolve()
      return new Promise((resolve, reject) => {
        const abort = (): void => {
          waiting = waiting.filter((entry) => entry !== mine)
          reject(signal?.reason)
        }
        const end = (outcome: () => void): void => {
          signal?.removeEventListener("abort", abort)
          outcome()
        }
        const mine: Waiting = {
          resolve: () => end(resolve),
          reject: (error) => end(() => reject(error)),
        }
        signal?.addEventListener("abort", abort, { once: true })
        waiting.push(mine)
      })
    },
    close() {
      if (closing.signal.aborted) return
      closing.abort()
      stopWatching?.()
      settle(closed())
    },
  }
}

interface Waiting {
  resolve(): void
  reject(error: Error): void
}

/** One load: an edition, or why there is none. Does not reject. */
async function loadEdition(
  source: RuleSource,
  service: string,
  signal: AbortSignal,
): Promise<Edition | RuleSourceError | InvalidRuleError> {
  try {
    const { rules: given, problems: aside, version } = await source.load(service, { signal })
    // A source that others wrote may yield anything.
    const { rules, problems: found } = parseRules(given, "rules")
    const problems = [...aside, ...found]
    if (rules.length === 0 && problems.length > 0) return new InvalidRuleError(problems)
    return { rules, problems, ...(version !== undefined && { version }) }
  } catch (error) {
    if (error instanceof RuleSourceError) return error
    return unusable(service, error)
  }
}

function unusable(service: string, cause: unknown): RuleSourceError {
  const reason = cause instanceof Error ? cause.message : show(cause)
  return new RuleSourceError(`The rules of service ${show(service)} cannot be loaded: ${reason}`, { cause })
}

function closed(): ClosedError {
  return new ClosedError("The rule book is closed")
}
