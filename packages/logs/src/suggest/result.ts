import type { RuleMatch } from "@sluice/core"
import type { ReplayResult } from "../replay/result.ts"
import type { WindowLength } from "./window-length.ts"
import type { WindowAlgorithm } from "./window-peaks.ts"

/** Suggested limits. The result is plain data. Times are epoch milliseconds. */
export interface SuggestResult {
  /** The version of this format. */
  readonly schema: 1
  /** The log as it was read, and the times of its first and its last request. */
  readonly log: Omit<ReplayResult["log"], "reordered" | "clients" | "from" | "to"> &
    Readonly<Record<"from" | "to", number>>
  /** The fields by which the suggested rules count. */
  readonly by: readonly string[]
  /** The algorithm of the suggested rules. */
  readonly algorithm: WindowAlgorithm
  /**
   * The largest share of clients that the tight candidate may refuse, from 0 to 1, unless a few clients are far above
   * the others.
   */
  readonly refuseAtMost: number
  /** The number of clients that sent a request. */
  readonly clients: EstimatedNumber
  /**
   * The size of the sample: 1 if all clients were counted, and 4 if one in 4 was counted. Above 1, the numbers of
   * clients are estimates.
   */
  readonly sampledOneOf: number
  /** The group of all requests, then the groups that get separate limits. */
  readonly groups: readonly SuggestGroup[]
  /** The limit for the whole service, as given. A log cannot show what a service can handle. */
  readonly capacity?: {
    /** Requests per window. */
    readonly limit: number
    /** The window. */
    readonly window: WindowLength
    /** The highest number of requests in this window. */
    readonly peak: number
    /** Number of requests that this limit refuses. Null without a second pass. */
    readonly requests: number | null
  }
  /** The few clients that make most of the requests, and their share. */
  readonly largest: {
    /** The clients, the largest first. Empty if the requests are spread over more clients. */
    readonly clients: readonly {
      /** The client. */
      readonly client: string
      /** The minimum number of the client's requests. */
      readonly requests: number
      /** Number of requests that the client may have made in addition. */
      readonly error: number
    }[]
    /** The share of all requests that these clients make, from 0 to 1. */
    readonly share: number
  }
  /** Remarks as text, the most important first. */
  readonly notes: readonly string[]
}

/** A number, and the half-width of its 95% confidence interval. The half-width is 0 if the number is exact. */
export interface EstimatedNumber {
  /** The number. */
  readonly value: number
  /** Half-width of the interval. */
  readonly error: number
}

/** Requests that get separate limits, and the suggested limits. */
export interface SuggestGroup {
  /** "all", the name of a rule, or a login such as "POST /login". */
  readonly name: string
  /** The requests that belong to the group. Absent: all. */
  readonly match?: RuleMatch
  /** The number of failed requests. Present if the path looks like a login. */
  readonly failed?: number
  /** Number of requests. */
  readonly requests: number
  /** Number of clients. */
  readonly clients: EstimatedNumber
  /** One result for each window, the shortest first. */
  readonly windows: readonly {
    /** The window. */
    readonly window: WindowLength
    /** The highest peak of a client. */
    readonly highestPeak: number
    /** The highest peak of all clients, except the clients that the tight candidate may refuse. */
    readonly usualPeak: number
    /** The share of clients that stay within this peak, from 0 to 1. */
    readonly usualShare: number
    /** Number of clients that are far above all others. Candidates ignore these clients. */
    readonly far: number
    /** The limits to choose from. Empty if the log contains too few requests. */
    readonly candidates: readonly SuggestCandidate[]
    /**
     * The candidates without the few clients that make most of the requests. Present if a few clients make most of
     * the requests.
     */
    readonly withoutLargest?: readonly SuggestCandidate[]
    /** True if the log is shorter than three windows. */
    readonly tooShort: boolean
  }[]
}

/** A limit, and the effect that it would have had. */
export interface SuggestCandidate {
  /** The method by which the limit was found. */
  readonly name: "careful" | "balanced" | "tight"
  /** Requests per window. */
  readonly limit: number
  /** Number of clients that the limit refuses at least once. */
  readonly clients: EstimatedNumber
  /** The share of refused clients, from 0 to 1. */
  readonly clientShare: number
  /** Number of requests that the limit refuses. Null without a second pass. */
  readonly requests: EstimatedNumber | null
  /** The share of refused requests, from 0 to 1. Null without a second pass. */
  readonly requestShare: number | null
  /** The smallest peak above the limit; null if no peak is above the limit. */
  readonly nextPeak: number | null
  /** True for the candidate that becomes a rule in the file. */
  readonly isRule: boolean
}

export type SuggestLog = SuggestResult["log"]
export type SuggestWindow = SuggestGroup["windows"][number]
