/** The result of replaying rules on logs: what `--json` prints and what the report shows. Times are epoch milliseconds. */
export interface ReplayResult {
  readonly schema: 1
  /** True if every bound holds and there are no problems. The exit code is then 0. */
  readonly ok: boolean
  /** Why the result cannot be relied on, such as a rule that the log cannot judge. The exit code is then 2. */
  readonly problems: readonly string[]
  readonly log: LogResult
  readonly rules: readonly RuleResult[]
  /** All enforced rules together. Clients are counted by address, or without one by what the first rule counts. */
  readonly total: { readonly seen: number; readonly refused: number; readonly clients: ClientCounts }
  /** The clients that the rules refused most often, worst first. At most 1,000. */
  readonly clients: readonly RefusedClient[]
  readonly timeline: Timeline
  /** What the rules change in comparison with other rules (`--against`). */
  readonly against?: Comparison
  /** The results of each rule under each algorithm (`--algorithm`). */
  readonly algorithms?: readonly AlgorithmResult[]
  /** How the replay compares with the verdicts in the log, if the log has any. */
  readonly live?: LiveComparison
  /** The bounds that were given, such as `--max-refused`. */
  readonly bounds: readonly BoundResult[]
  /** Remarks for people, in the order of importance. The first one is the main limit of every replay. */
  readonly notes: readonly string[]
}

export interface LogResult {
  readonly files: readonly { readonly name: string; readonly format: string; readonly lines: number }[]
  readonly lines: number
  readonly requests: number
  readonly unparsed: number
  readonly skipped: number
  readonly reordered: number
  readonly late: number
  readonly tooManyRequests: number
  readonly clients: number
  readonly from: number | null
  readonly to: number | null
  readonly resolutionMs: number
}

export interface ClientCounts {
  readonly seen: number
  readonly refused: number
}

export interface RuleResult {
  readonly name: string
  readonly algorithm: string
  /** Quota units per window. */
  readonly limit: number
  readonly windowMs: number
  /** The window as in the rule, such as "1 minute". */
  readonly window: string
  /** True if the rule only reports. `refused` then counts what it would have refused. */
  readonly shadow: boolean
  /** False if the log lacks a field that the rule needs. All other numbers are then about the requests that have it. */
  readonly judged: boolean
  /** The fields that the log lacks. */
  readonly missing: readonly string[]
  readonly seen: number
  readonly refused: number
  /** Refused requests by reason, such as "quota", "denied" or "penalty". */
  readonly reasons: Readonly<Record<string, number>>
  readonly clients: ClientCounts & {
    /** Refused clients whose own peak does not exceed the limit, as happens in a counter that several clients share. */
    readonly bystanders: number
  }
  /**
   * Clients that were refused for their demand, by their own peak relative to the limit: up to 1.5 times, up to 5 times,
   * and above. Without bystanders.
   */
  readonly ratios: readonly { readonly upTo: number | null; readonly clients: number }[]
  /** All clients of the rule by their own peak, relative to the limit. */
  readonly peaks: PeakHistogram
  /** The peak of all clients together, relative to the limit, if the rule counts the whole service. */
  readonly peak?: number
  /** The result with the lines of each second spread evenly, if the log's times are too coarse for the window. */
  readonly spread?: { readonly refused: number; readonly clients: number }
  /** True if the window is longer than a third of the log. */
  readonly tooShort: boolean
}

/** `counts[i]` is the number of values above `edges[i - 1]` and up to `edges[i]`; the last one has no upper edge. */
export interface PeakHistogram {
  readonly edges: readonly number[]
  readonly counts: readonly number[]
}

export interface RefusedClient {
  /** The client as its rule counts it, such as an address or a value of a field. */
  readonly client: string
  readonly rule: string
  readonly shadow: boolean
  readonly requests: number
  readonly refused: number
  /** The client's own peak, relative to the limit. */
  readonly peak: number
  readonly firstRefused: number
  readonly lastRefused: number
}

/** Counts of requests in steps of equal length. All lists have the same length. */
export interface Timeline {
  readonly from: number
  readonly stepMs: number
  readonly admitted: readonly number[]
  readonly refused: readonly number[]
  /** Requests that each rule refused, also shadow rules, by name. */
  readonly refusedBy: Readonly<Record<string, readonly number[]>>
}

export interface Comparison {
  /** Name of the other file of rules. */
  readonly file: string
  /** Requests and clients that only the new rules, or only the old rules, refuse. */
  readonly newlyRefused: { readonly requests: number; readonly clients: number }
  readonly noLongerRefused: { readonly requests: number; readonly clients: number }
  readonly rules: readonly {
    readonly name: string
    readonly newlyRefused: number
    readonly noLongerRefused: number
  }[]
  /** The clients that change most. At most 20. Counts of refused requests under the old and the new rules. */
  readonly clients: readonly { readonly client: string; readonly before: number; readonly after: number }[]
}

export interface AlgorithmResult {
  readonly rule: string
  readonly algorithm: string
  /** Absent if the rule's other members do not fit the algorithm. */
  readonly refused?: number
  readonly clients?: number
  /** Why the rule cannot be replayed with this algorithm. */
  readonly problem?: string
}

export interface LiveComparison {
  /** Requests that have a live verdict. */
  readonly compared: number
  /** Requests whose verdicts differ. */
  readonly different: number
  /** The first 10,000 of them. */
  readonly differences: readonly {
    readonly file: string
    readonly line: number
    readonly live: string
    readonly replayed: string
  }[]
}

export interface BoundResult {
  /** The option, such as "--max-refused 0.5%". */
  readonly bound: string
  readonly value: string
  readonly holds: boolean
}
