import type { Rule } from "../../packages/core/src/rules/rule.ts"
import type {
  FoundRules,
  LoadedRules,
  LoadOptions,
  RuleSource,
} from "../../packages/core/src/rules/source.ts"

/** A load that waits to be settled by the test. */
export interface AskedLoad {
  readonly service: string
  readonly signal: AbortSignal | undefined
  readonly fresh: boolean | undefined
  resolve(loaded: LoadedRules): void
  reject(error: unknown): void
}

/** A source whose loads are settled by hand, in any order. */
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

/** What is stored for a service: rules, or anything that a source may yield in their place. */
export interface Stored {
  readonly rules: readonly unknown[]
  readonly version?: number
}

/**
 * A table in memory with what a test may do to it. It counts what it is asked, and how often a document is parsed.
 * `stored` is what is there; `pageSize` how many services a page of the list has.
 */
export class TableSource implements RuleSource {
  readonly name = "the table"
  readonly stored: Map<string, Stored> = new Map()
  readonly pollMs?: number
  readonly asked: string[] = []
  /** Of lists and loads by name, in their order: whether what is stored now was asked for. */
  readonly fresh: boolean[] = []
  lists = 0
  reads = 0
  pageSize = 2
  /** What is thrown instead of the page of this number, counted from 0, or of a load by name. */
  failure: { readonly error: Error; readonly page: number } | undefined
  /** Awaited before each page, and each load by name. */
  gate: (() => Promise<void>) | undefined

  constructor(stored: Readonly<Record<string, Stored>> = {}, pollMs?: number) {
    for (const [service, each] of Object.entries(stored)) this.stored.set(service, each)
    if (pollMs !== undefined) this.pollMs = pollMs
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

/** A rule that is called "rule", of so many units a minute. */
export function rule(limit: number, more: Partial<Rule> = {}): Rule {
  return { name: "rule", field: "service", limit, window: "1m", ...more }
}

/** Lets everything happen that needs no time. */
export async function settled(): Promise<void> {
  for (let turn = 0; turn < 5; turn++) await new Promise<void>((resolve) => setImmediate(resolve))
}
