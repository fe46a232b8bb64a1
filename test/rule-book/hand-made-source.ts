import { onTestFinished } from "vitest"
import type { Clock } from "../../packages/core/src/ground/clock.ts"
import { VERSION } from "../../packages/core/src/ground/copies.ts"
import { createLimiter } from "../../packages/core/src/limiter/create-limiter.ts"
import type { Limiter } from "../../packages/core/src/limiter/interface/limiter.ts"
import type { LiveRules, OpenedRules, RulesReader } from "../../packages/core/src/rules/live-rules.ts"
import type { RateRule, Rule } from "../../packages/core/src/rules/rule.ts"
import { type LiveSource, liveRules } from "../../packages/rules/src/book/live-source.ts"
import { createRuleBook } from "../../packages/rules/src/book/open-book.ts"
import type { RuleBookOptions } from "../../packages/rules/src/book/options.ts"
import type { RuleBook } from "../../packages/rules/src/rule-book.ts"
import type { FoundRules, LoadedRules, LoadOptions, RuleSource } from "../../packages/rules/src/source.ts"

/** A load that waits until the test settles it. */
export interface AskedLoad {
  readonly service: string
  readonly signal: AbortSignal | undefined
  readonly fresh: boolean | undefined
  resolve(loaded: LoadedRules): void
  reject(error: unknown): void
}

/** Creates a source whose loads the test settles, in any order. */
export function handSettledSource() {
  const loads: AskedLoad[] = []
  const listeners = new Set<() => void>()
  const calls: string[] = []
  const source: RuleSource = {
    load(service, { signal, fresh } = {}) {
      calls.push(`load ${service}`)
      return new Promise((resolve, reject) => loads.push({ service, resolve, reject, signal, fresh }))
    },
    watch(changed) {
      calls.push("watch")
      listeners.add(changed)
      return () => listeners.delete(changed)
    },
  }
  const change = (): void => {
    for (const changed of listeners) changed()
  }
  return { source, loads, listeners, calls, change }
}

/** The stored document of a service: rules, or any other value that a source may return for them. */
export interface Stored {
  readonly rules: readonly unknown[]
  readonly version?: number
}

/**
 * A table in memory that a test can change. The table counts its calls, and how often a document is parsed. `stored`
 * contains the documents, and `pageSize` is the number of services per page of the list.
 */
export class TableSource implements LiveSource {
  readonly name = "the table"
  readonly coreVersion = VERSION
  readonly readsSynchronously = false
  readonly stored: Map<string, Stored> = new Map()
  readonly pollMs?: number
  readonly asked: string[] = []
  /** Whether each listing and each load by name requested fresh rules, in order. */
  readonly fresh: boolean[] = []
  lists = 0
  reads = 0
  pageSize = 2
  /** The error to throw for the page with this number, counted from 0, or for a load by name. */
  failure: { readonly error: Error; readonly page: number } | undefined
  /** Awaited before each page and each load by name. */
  gate: (() => Promise<void>) | undefined

  constructor(stored: Readonly<Record<string, Stored>> = {}, pollMs?: number) {
    for (const [service, each] of Object.entries(stored)) this.stored.set(service, each)
    if (pollMs !== undefined) this.pollMs = pollMs
  }

  open(service: string, reader: RulesReader): OpenedRules {
    return liveRules(this).open(service, reader)
  }

  async load(service: string, { fresh = false }: LoadOptions = {}): Promise<LoadedRules> {
    this.fresh.push(fresh)
    this.asked.push(service)
    const found = this.stored.get(service)
    await this.gate?.()
    if (this.failure !== undefined) throw this.failure.error
    if (found === undefined) return { rules: [], problems: [] }
    return { ...loadedOf(found), stamp: JSON.stringify(found) }
  }

  async *loadAll({ fresh = false }: LoadOptions = {}): AsyncGenerator<readonly FoundRules[]> {
    this.fresh.push(fresh)
    this.lists += 1
    const all = [...this.stored]
    for (let at = 0; at < all.length || at === 0; at += this.pageSize) {
      await this.gate?.()
      if (this.failure?.page === at / this.pageSize) throw this.failure.error
      yield all.slice(at, at + this.pageSize).map(([service, found]) => this.#found(service, found))
    }
  }

  #found(service: string, found: Stored): FoundRules {
    return {
      service,
      stamp: JSON.stringify(found),
      read: () => {
        this.reads += 1
        return loadedOf(found)
      },
    }
  }
}

function loadedOf({ rules, version }: Stored): LoadedRules {
  return { rules: rules as Rule[], problems: [], ...(version !== undefined && { version }) }
}

const QUIET = { warn() {}, error() {} }

/** Opens a book for one test, which logs nothing and has no jitter. */
export function openBook(options: RuleBookOptions): RuleBook {
  const book = createRuleBook({ logger: QUIET, random: () => 0, ...options })
  onTestFinished(() => book.close())
  return book
}

/** Creates a limiter for one test, which admits everything until its rules are loaded. */
export function limiterOn(rules: LiveRules, service: string, clock?: Clock): Limiter {
  const limiter = createLimiter({ rules, onRulesMissing: "allow", service, clock, logger: QUIET })
  onTestFinished(() => limiter.close())
  return limiter
}

/** Returns a rule with the name "rule" and this limit per minute. */
export function rule(limit: number, more: Partial<RateRule> = {}): RateRule {
  return { name: "rule", field: "service", limit, window: "1m", ...more }
}

/** Waits until all pending work has run that does not depend on time. */
export async function settled(): Promise<void> {
  for (let turn = 0; turn < 5; turn++) await new Promise<void>((resolve) => setImmediate(resolve))
}
