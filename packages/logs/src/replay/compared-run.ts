import type { ReplayVerdict } from "@sluice/core/replay"
import type { StorableRule } from "@sluice/rules"
import type { LogRecord } from "../reading/log.ts"
import { ReplayRun, type RunContext } from "./replay-run.ts"
import type { Comparison } from "./result.ts"

/** A set of rules with the name of its file. */
export interface NamedRules {
  readonly name: string
  readonly rules: readonly StorableRule[]
}

/** A comparison with the numbers of clients instead of their names. */
export interface NumberedComparison extends Omit<Comparison, "clients"> {
  readonly clients: readonly { readonly client: number; readonly before: number; readonly after: number }[]
}

const MOST_CHANGED = 20

/** The replay of the rules before a change, and the differences that the change causes. */
export class ComparedRun {
  readonly run: ReplayRun
  readonly name: string
  #newlyRefused = 0
  #noLongerRefused = 0
  readonly #newlyRefusedBy = new Map<string, number>()
  readonly #noLongerRefusedBy = new Map<string, number>()

  constructor({ name, rules }: NamedRules, context: RunContext) {
    this.name = name
    this.run = new ReplayRun(rules, context)
  }

  /** Decides a request under the rules before the change. `after` is the verdict of the new rules. */
  offer(record: LogRecord, after: ReplayVerdict): void {
    const before = this.run.offer(record)
    if (before.allowed && !after.allowed) this.#newlyRefused++
    if (!before.allowed && after.allowed) this.#noLongerRefused++
    countOnly(after.refusedBy, before.refusedBy, this.#newlyRefusedBy)
    countOnly(before.refusedBy, after.refusedBy, this.#noLongerRefusedBy)
  }

  /** Returns the comparison with the replay of the new rules. */
  comparison(main: ReplayRun): NumberedComparison {
    const [after, before] = [main.refusedOf, this.run.refusedOf]
    const changed: { client: number; before: number; after: number }[] = []
    let newClients = 0
    let oldClients = 0
    for (let client = 0; client < Math.max(after.length, before.length); client++) {
      const change = { client, before: before[client] ?? 0, after: after[client] ?? 0 }
      if (change.before === change.after) continue
      changed.push(change)
      if (change.before === 0) newClients++
      if (change.after === 0) oldClients++
    }
    const names = [...new Set([...main.rules, ...this.run.rules].map(({ rule }) => rule.name))]
    const size = (one: { before: number; after: number }) => Math.abs(one.after - one.before)
    return {
      file: this.name,
      newlyRefused: { requests: this.#newlyRefused, clients: newClients },
      noLongerRefused: { requests: this.#noLongerRefused, clients: oldClients },
      rules: names.map((name) => ({
        name,
        newlyRefused: this.#newlyRefusedBy.get(name) ?? 0,
        noLongerRefused: this.#noLongerRefusedBy.get(name) ?? 0,
      })),
      clients: changed.sort((one, other) => size(other) - size(one)).slice(0, MOST_CHANGED),
    }
  }
}

/** Counts the names that only the first array contains. */
function countOnly(names: readonly string[], others: readonly string[], counts: Map<string, number>): void {
  for (const name of names) if (!others.includes(name)) counts.set(name, (counts.get(name) ?? 0) + 1)
}
