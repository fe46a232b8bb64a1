import type { StorableRule } from "@sluice/core"
import type { LogRecord } from "../logs/log.ts"
import type { NeverList } from "./bounds.ts"
import { ReplayRun, type RunContext } from "./replay-run.ts"
import type { AlgorithmResult, Comparison, LiveComparison } from "./result.ts"

/** A set of rules with the name of its file. */
export interface NamedRules {
  readonly name: string
  readonly rules: readonly StorableRule[]
}

export interface LogsReplayOptions extends RunContext {
  readonly rules: readonly StorableRule[]
  /** The rules to compare with. */
  readonly against?: NamedRules | undefined
  /** Algorithms to compare. */
  readonly algorithms?: readonly string[] | undefined
  readonly never?: NeverList | undefined
}

/** A comparison with the numbers of clients instead of their names. */
export interface NumberedComparison extends Omit<Comparison, "clients"> {
  readonly clients: readonly { readonly client: number; readonly before: number; readonly after: number }[]
}

/** A window is short if it has fewer steps of the log's clock than this: then bursts look worse than they were. */
const FEWEST_STEPS = 10
const COARSE_MS = 1_000
const MOST_CHANGED = 20
const MOST_DIFFERENCES = 100_000

/** Replays records under one or several sets of rules at once, so that the logs are read only once. */
export class LogsReplay {
  readonly main: ReplayRun
  readonly #context: LogsReplayOptions
  readonly #against: ReplayRun | undefined
  /** The replay with the lines of each second spread evenly. Present if a window is short. */
  readonly spread: ReplayRun | undefined
  readonly #byAlgorithm: readonly AlgorithmRun[]
  #spreadMs = 0
  #newlyRefused = 0
  #noLongerRefused = 0
  readonly #newlyRefusedBy = new Map<string, number>()
  readonly #noLongerRefusedBy = new Map<string, number>()
  #compared = 0
  readonly #differences: { file: number; line: number; live: string; replayed: string }[] = []

  constructor(options: LogsReplayOptions) {
    const { rules, against, algorithms = [] } = options
    this.#context = options
    this.main = new ReplayRun(rules, options)
    this.#against = against && new ReplayRun(against.rules, options)
    const isShort = this.main.rules.some(({ rule }) => isPessimistic(rule.windowMs, COARSE_MS))
    this.spread = isShort ? new ReplayRun(rules, options) : undefined
    this.#byAlgorithm = algorithms.map((algorithm) => new AlgorithmRun(algorithm, options))
  }

  /** Replays records of one second or more, in the order of their times. */
  offer(records: readonly LogRecord[]): void {
    for (let i = 0; i < records.length; i++) this.#offer(records[i] as LogRecord)
    if (this.spread === undefined) return
    for (const record of spreadOut(records)) {
      // A late line has the time of the line before it, which was moved.
      this.#spreadMs = Math.max(this.#spreadMs, record.atMs)
      this.spread.offer(record.atMs === this.#spreadMs ? record : { ...record, atMs: this.#spreadMs })
    }
  }

  #offer(record: LogRecord): void {
    const verdict = this.main.offer(record)
    const { never } = this.#context
    if (never !== undefined && !verdict.allowed)
      never.refused(verdict.client, ...verdict.checks.map(({ partition }) => partition))
    if (record.live !== undefined) this.#compareLive(record, verdict.allowed, verdict.refusedBy)
    if (this.#against !== undefined) {
      // The verdict of the other rules is an object of its own.
      const before = this.#against.offer(record)
      if (before.allowed && !verdict.allowed) this.#newlyRefused++
      if (!before.allowed && verdict.allowed) this.#noLongerRefused++
      countOnly(verdict.refusedBy, before.refusedBy, this.#newlyRefusedBy)
      countOnly(before.refusedBy, verdict.refusedBy, this.#noLongerRefusedBy)
    }
    for (const run of this.#byAlgorithm) run.offer(record)
  }

  #compareLive({ live, file, line }: LogRecord, allowed: boolean, refusedBy: readonly string[]): void {
    this.#compared++
    if (live === undefined) return
    if (live.allowed === allowed && (allowed || refusedBy.includes(live.policy))) return
    if (this.#differences.length >= MOST_DIFFERENCES) return
    this.#differences.push({
      ...{ file, line },
      live: live.allowed ? "admitted" : `refused by ${live.policy}`,
      replayed: allowed ? "admitted" : `refused by ${refusedBy.join(" and ")}`,
    })
  }

  /** Returns the comparison with the other rules. Undefined if there are none. */
  get comparison(): NumberedComparison | undefined {
    const { against } = this.#context
    if (against === undefined || this.#against === undefined) return undefined
    const [after, before] = [this.main.refusedOf, this.#against.refusedOf]
    const changed: { client: number; before: number; after: number }[] = []
    for (let client = 0; client < Math.max(after.length, before.length); client++) {
      const change = { client, before: before[client] ?? 0, after: after[client] ?? 0 }
      if (change.before !== change.after) changed.push(change)
    }
    const names = [...new Set([...this.main.rules, ...this.#against.rules].map(({ rule }) => rule.name))]
    const size = (one: { before: number; after: number }) => Math.abs(one.after - one.before)
    return {
      file: against.name,
      newlyRefused: {
        requests: this.#newlyRefused,
        clients: changed.filter((each) => each.before === 0).length,
      },
      noLongerRefused: {
        requests: this.#noLongerRefused,
        clients: changed.filter((each) => each.after === 0).length,
      },
      rules: names.map((name) => ({
        name,
        newlyRefused: this.#newlyRefusedBy.get(name) ?? 0,
        noLongerRefused: this.#noLongerRefusedBy.get(name) ?? 0,
      })),
      clients: changed.sort((one, other) => size(other) - size(one)).slice(0, MOST_CHANGED),
    }
  }

  /** Returns the results of each rule under each algorithm. Undefined if no algorithm was asked for. */
  get algorithms(): readonly AlgorithmResult[] | undefined {
    if (this.#byAlgorithm.length === 0) return undefined
    return this.main.rules.flatMap(({ rule }) => this.#byAlgorithm.map((run) => run.resultOf(rule.name)))
  }

  /** Returns how the verdicts in the log compare with the replay. Undefined if the log has none. */
  live(files: readonly { readonly name: string }[]): LiveComparison | undefined {
    if (this.#compared === 0) return undefined
    return {
      compared: this.#compared,
      differences: this.#differences.map((each) => ({ ...each, file: files[each.file]?.name ?? "" })),
    }
  }
}

/** True if the log's times are too coarse for the window. */
export function isPessimistic(windowMs: number, resolutionMs: number): boolean {
  return windowMs < FEWEST_STEPS * resolutionMs
}

/** A replay in which every rule uses another algorithm. */
class AlgorithmRun {
  readonly #algorithm: string
  readonly #problems = new Map<string, string>()
  readonly #run: ReplayRun

  constructor(algorithm: string, options: LogsReplayOptions) {
    this.#algorithm = algorithm
    const rules = options.rules.map((rule) => ({ ...rule, algorithm }) as StorableRule)
    const valid = rules.filter((rule, at) => {
      try {
        new ReplayRun([rule], options)
        return true
      } catch (error) {
        const name = new ReplayRun([options.rules[at] as StorableRule], options).rules[0]?.rule.name ?? ""
        this.#problems.set(name, (error as Error).message)
        return false
      }
    })
    // Rules have names made from field and window, so they stay the same.
    this.#run = new ReplayRun(valid, options)
  }

  offer(record: LogRecord): void {
    this.#run.offer(record)
  }

  resultOf(rule: string): AlgorithmResult {
    const algorithm = this.#algorithm
    const problem = this.#problems.get(rule)
    if (problem !== undefined) return { rule, algorithm, problem }
    const statistics = this.#run.rules.find((each) => each.rule.name === rule)
    return {
      ...{ rule, algorithm },
      refused: statistics?.refused ?? 0,
      clients: statistics?.clients.refused.length ?? 0,
    }
  }
}

/** Counts the names that only the first list has. */
function countOnly(names: readonly string[], others: readonly string[], counts: Map<string, number>): void {
  for (const name of names) if (!others.includes(name)) counts.set(name, (counts.get(name) ?? 0) + 1)
}

/** Returns the records with those of a whole second spread evenly over it. */
function spreadOut(records: readonly LogRecord[]): LogRecord[] {
  const spread: LogRecord[] = []
  for (let from = 0; from < records.length; ) {
    const { atMs } = records[from] as LogRecord
    let end = from + 1
    while (end < records.length && records[end]?.atMs === atMs) end++
    const isCoarse = atMs % COARSE_MS === 0
    for (let i = from; i < end; i++) {
      const record = records[i] as LogRecord
      const offsetMs = isCoarse ? Math.floor((COARSE_MS * (i - from)) / (end - from)) : 0
      spread.push(offsetMs === 0 ? record : { ...record, atMs: atMs + offsetMs })
    }
    from = end
  }
  return spread
}
