/** The result of replaying rules on logs. The result is plain data. Times are epoch milliseconds. */
export interface ReplayResult {
  /** The version of this format. */
  readonly schema: 1
  /** True if every bound holds and there are no problems. The command `sluice` then exits with 0. */
  readonly ok: boolean
  /** The reasons why the result is not reliable, such as a rule that the log cannot judge. */
  readonly problems: readonly string[]
  /** The log as it was read. */
  readonly log: {
    /** The files, in the order in which they were given. */
    readonly files: readonly {
      /** The name as given; "standard input" for "-". */
      readonly name: string
      /** Name of the file's format, such as "combined". */
      readonly format: string
      /** Number of lines in the file. */
      readonly lines: number
    }[]
    /** Number of lines. */
    readonly lines: number
    /** Number of requests that were replayed. */
    readonly requests: number
    /** Number of lines that do not match the format of their file. */
    readonly unparsed: number
    /** Number of lines that are not requests, or that the options exclude. */
    readonly skipped: number
    /** Number of lines that were sorted. */
    readonly reordered: number
    /** Number of lines that came too late to be sorted. */
    readonly late: number
    /** Number of requests that another limiter refused. */
    readonly tooManyRequests: number
    /** Number of clients. */
    readonly clients: number
    /** The time of the first request; null if there are no requests. */
    readonly from: number | null
    /** The time of the last request; null if there are no requests. */
    readonly to: number | null
    /** The coarsest resolution of the times, in milliseconds. */
    readonly resolutionMs: number
  }
  /** One result for each rule, in the order of the option `rules`. */
  readonly rules: readonly RuleResult[]
  /**
   * All enforced rules together. Clients are counted by address. Requests without an address are counted as the first
   * rule counts them.
   */
  readonly total: {
    /** Number of requests. */
    readonly seen: number
    /** Number of refused requests. */
    readonly refused: number
    /** The number of clients, and the number of clients that were refused at least once. */
    readonly clients: Readonly<Record<"seen" | "refused", number>>
  }
  /** The clients that the rules refused most often, worst first. At most 1,000. */
  readonly clients: readonly RefusedClient[]
  /** Counts of requests in steps of equal length. All arrays have the same length. */
  readonly timeline: {
    /** The start of the first step. */
    readonly from: number
    /** The length of a step in milliseconds. */
    readonly stepMs: number
    /** Admitted requests of each step. */
    readonly admitted: readonly number[]
    /** Refused requests of each step. */
    readonly refused: readonly number[]
    /** Refused requests by name of the rule, including shadow rules. */
    readonly refusedBy: Readonly<Record<string, readonly number[]>>
  }
  /** The differences from the results of other rules (option `against`). */
  readonly against?: {
    /** Name of the other rules. */
    readonly file: string
    /** Requests and clients that only the new rules refuse. */
    readonly newlyRefused: Readonly<Record<"requests" | "clients", number>>
    /** Requests and clients that only the old rules refuse. */
    readonly noLongerRefused: Readonly<Record<"requests" | "clients", number>>
    /** Changes in the requests that each rule refuses. */
    readonly rules: readonly {
      /** Name of the rule. */
      readonly name: string
      /** Number of requests that the new rule refuses and the old rule did not. */
      readonly newlyRefused: number
      /** Number of requests that the old rule refused and the new rule does not. */
      readonly noLongerRefused: number
    }[]
    /** The clients whose numbers of refused requests change most, at most 20. */
    readonly clients: readonly {
      /** The client. */
      readonly client: string
      /** Number of the client's refused requests under the old rules. */
      readonly before: number
      /** Number of the client's refused requests under the new rules. */
      readonly after: number
    }[]
  }
  /** The results of each rule under each algorithm (option `algorithms`). */
  readonly algorithms?: readonly {
    /** Name of the rule. */
    readonly rule: string
    /** Name of the algorithm. */
    readonly algorithm: string
    /** Number of refused requests. Absent if the rule's other members do not fit the algorithm. */
    readonly refused?: number
    /** Number of refused clients. Absent if the rule's other members do not fit the algorithm. */
    readonly clients?: number
    /** The reason why the rule cannot be replayed with this algorithm. */
    readonly problem?: string
  }[]
  /** The comparison of the replay with the verdicts in the log. Absent if the log contains no verdicts. */
  readonly live?: {
    /** Requests that have a live verdict. */
    readonly compared: number
    /** Requests whose verdicts differ. */
    readonly different: number
    /** The first 10,000 requests whose verdicts differ. */
    readonly differences: readonly {
      /** Name of the file. */
      readonly file: string
      /** Number of the line, from 1. */
      readonly line: number
      /** The verdict in the log. */
      readonly live: string
      /** The verdict of the replay. */
      readonly replayed: string
    }[]
  }
  /** The bounds that were given, each with the value that was found. */
  readonly bounds: readonly {
    /** The option of the command, such as "--max-refused 0.5%". */
    readonly bound: string
    /** The actual value as readable text, such as "5 of 1000, 0.5%". */
    readonly value: string
    /** False if the bound is exceeded. */
    readonly holds: boolean
  }[]
  /** Remarks as text, in the order of importance. The first remark is the main limitation of every replay. */
  readonly notes: readonly string[]
}

/** The result of a replay for one rule. */
export interface RuleResult {
  /** Name of the rule. */
  readonly name: string
  /** Name of its algorithm. */
  readonly algorithm: string
  /** Quota units per window. */
  readonly limit: number
  /** Length of the window in milliseconds. For a rule with `per`, the length of the longest period. */
  readonly windowMs: number
  /** The window as written in the rule, such as "1 minute", or its `per`, such as "month". */
  readonly window: string
  /** True if the rule only reports. `refused` then counts the requests that the rule would have refused. */
  readonly shadow: boolean
  /**
   * False if the log lacks a field that the rule needs. All other numbers then cover only the requests that contain
   * the field. False for rules with `concurrent`, because a log does not show when requests end.
   */
  readonly judged: boolean
  /** The fields that the log lacks. "concurrent" stands for the end of the requests. */
  readonly missing: readonly string[]
  /** Number of requests that the rule applies to. */
  readonly seen: number
  /** Number of requests that the rule refused. */
  readonly refused: number
  /** Refused requests by reason, such as "quota", "denied" or "penalty". */
  readonly reasons: Readonly<Record<string, number>>
  /** The clients that the rule counts. */
  readonly clients: {
    /** Number of clients. */
    readonly seen: number
    /** Number of clients that were refused at least once. */
    readonly refused: number
    /** Refused clients whose own peak does not exceed the limit, as happens when several clients share a counter. */
    readonly bystanders: number
  }
  /**
   * Clients that were refused for their demand, by their own peak relative to the limit: up to 1.5 times, up to 5 times,
   * and above. Without bystanders.
   */
  readonly ratios: readonly {
    /** The highest multiple of the limit; null for the last entry. */
    readonly upTo: number | null
    /** Number of clients. */
    readonly clients: number
  }[]
  /**
   * All clients of the rule by their own peak, relative to the limit. `counts[i]` is the number of clients above
   * `edges[i - 1]` and up to `edges[i]`; the last count has no upper edge.
   */
  readonly peaks: Readonly<Record<"edges" | "counts", readonly number[]>>
  /** The peak of all clients together, relative to the limit, if the rule counts the whole service. */
  readonly peak?: number
  /** The result with the lines of each second spread evenly, if the log's times are too coarse for the window. */
  readonly spread?: Readonly<Record<"refused" | "clients", number>>
  /** True if the window is longer than a third of the log. */
  readonly tooShort: boolean
}

/** A client that a rule refused. */
export interface RefusedClient {
  /** The client as its rule counts it, such as an address or a value of a field. */
  readonly client: string
  /** Name of the rule. */
  readonly rule: string
  /** True if the rule only reports. */
  readonly shadow: boolean
  /** Number of requests of the client. */
  readonly requests: number
  /** Number of the client's refused requests. */
  readonly refused: number
  /** The client's own peak, relative to the limit. */
  readonly peak: number
  /** The time of the first refused request. */
  readonly firstRefused: number
  /** The time of the last refused request. */
  readonly lastRefused: number
}

export type LogResult = ReplayResult["log"]
export type PeakHistogram = RuleResult["peaks"]
export type Timeline = ReplayResult["timeline"]
export type Comparison = NonNullable<ReplayResult["against"]>
export type AlgorithmResult = NonNullable<ReplayResult["algorithms"]>[number]
export type LiveComparison = NonNullable<ReplayResult["live"]>
export type BoundResult = ReplayResult["bounds"][number]
