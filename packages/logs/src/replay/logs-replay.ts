import type { StorableRule } from "@sluice/rules"
import type { LogRecord } from "../reading/log.ts"
import { AlgorithmRuns } from "./algorithm-runs.ts"
import { ComparedRun, type NamedRules, type NumberedComparison } from "./compared-run.ts"
import { LiveVerdicts } from "./live-verdicts.ts"
import type { NeverList } from "./never-list.ts"
import { ProxyHeader } from "./proxy-header.ts"
import { ReplayRun, type RunContext } from "./replay-run.ts"
import type { AlgorithmResult } from "./result.ts"

export interface LogsReplayOptions extends RunContext {
  readonly rules: readonly StorableRule[]
  /** The rules to compare with. */
  readonly against?: NamedRules | undefined
  /** Algorithms to compare. */
  readonly algorithms?: readonly string[] | undefined
  readonly never?: NeverList | undefined
}

/**
 * A window is too short if it contains fewer steps of the log's clock than this number. Bursts then look worse than
 * they were.
 */
const FEWEST_STEPS = 10
const SECOND_MS = 1_000

/** Replays records under one or several sets of rules at the same time, so that the logs are read only once. */
export class LogsReplay {
  readonly main: ReplayRun
  readonly compared: ComparedRun | undefined
  readonly live = new LiveVerdicts()
  readonly forwarded: ProxyHeader
  readonly #options: LogsReplayOptions
  readonly #byAlgorithm: AlgorithmRuns | undefined
  /** The replay with the lines of each second spread evenly. Present if a window is short and times are in seconds. */
  #spread: ReplayRun | undefined
  #latestSpreadMs = 0
  #isBegun = false

  constructor(options: LogsReplayOptions) {
    const { rules, against, algorithms = [] } = options
    this.#options = options
    // Create the replay first, because it checks the address options, and `ProxyHeader` does not.
    this.main = new ReplayRun(rules, options)
    this.forwarded = new ProxyHeader(options.address)
    this.compared = against && new ComparedRun(against, options)
    this.#byAlgorithm = algorithms.length === 0 ? undefined : new AlgorithmRuns(algorithms, rules, options)
  }

  /**
   * Replays the records of one or more whole seconds, in order of time. `resolutionMs` is the resolution of the log's
   * timestamps.
   */
  offer(records: readonly LogRecord[], resolutionMs: number): void {
    if (!this.#isBegun) this.#begin(resolutionMs)
    for (let i = 0; i < records.length; i++) this.#offer(records[i] as LogRecord)
    if (this.#spread !== undefined) this.#offerSpread(this.#spread, records)
  }

  /** Number of counters that were evicted for lack of memory, in all replays. */
  get evictions(): number {
    const runs = [this.main, this.compared?.run, this.#spread].flatMap((run) => run ?? [])
    const own = runs.reduce((sum, { replay }) => sum + replay.evictions, 0)
    return own + (this.#byAlgorithm?.evictions ?? 0)
  }

  get spread(): ReplayRun | undefined {
    return this.#spread
  }

  get comparison(): NumberedComparison | undefined {
    return this.compared?.comparison(this.main)
  }

  /** The results of each rule under each algorithm. Undefined if no algorithms were given. */
  get algorithms(): readonly AlgorithmResult[] | undefined {
    return this.#byAlgorithm?.results
  }

  #begin(resolutionMs: number): void {
    this.#isBegun = true
    const isShort = this.main.rules.some(({ rule }) => isPessimistic(rule.windowMs, resolutionMs))
    if (resolutionMs >= SECOND_MS && isShort) this.#spread = new ReplayRun(this.#options.rules, this.#options)
  }

  #offer(record: LogRecord): void {
    const verdict = this.main.offer(record)
    this.forwarded.see(record)
    const { never } = this.#options
    if (never !== undefined && !verdict.allowed) never.refused(verdict)
    if (record.live !== undefined) this.live.compare(record, record.live, verdict)
    this.compared?.offer(record, verdict)
    this.#byAlgorithm?.offer(record)
  }

  #offerSpread(run: ReplayRun, records: readonly LogRecord[]): void {
    for (const record of spreadOut(records)) {
      // A late line has the time of the previous line, which may have been spread to a later time.
      this.#latestSpreadMs = Math.max(this.#latestSpreadMs, record.atMs)
      run.offer(record.atMs === this.#latestSpreadMs ? record : { ...record, atMs: this.#latestSpreadMs })
    }
  }
}

/** True if the log's times are too coarse for the window. */
export function isPessimistic(windowMs: number, resolutionMs: number): boolean {
  return windowMs < FEWEST_STEPS * resolutionMs
}

/**
 * Returns the records sorted by new times. The records of a whole second are spread evenly over this second. Records
 * with fractions of a second keep their times, because their file is more precise.
 */
function spreadOut(records: readonly LogRecord[]): LogRecord[] {
  const spread: LogRecord[] = []
  for (let from = 0; from < records.length; ) {
    const { atMs } = records[from] as LogRecord
    let end = from + 1
    while (end < records.length && records[end]?.atMs === atMs) end++
    const isCoarse = atMs % SECOND_MS === 0
    for (let i = from; i < end; i++) {
      const record = records[i] as LogRecord
      const offsetMs = isCoarse ? Math.floor((SECOND_MS * (i - from)) / (end - from)) : 0
      spread.push(offsetMs === 0 ? record : { ...record, atMs: atMs + offsetMs })
    }
    from = end
  }
  return spread.sort((one, other) => one.atMs - other.atMs)
}
