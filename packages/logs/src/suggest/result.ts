import type { RuleMatch } from "@sluice/core"
import type { ReplayResult } from "../replay/result.ts"
import type { WindowLength } from "./window-length.ts"
import type { WindowAlgorithm } from "./window-peaks.ts"

/** Suggested limits. All of it is plain data. Times are epoch milliseconds. */
export interface SuggestResult {
  /** The version of this shape. */
  readonly schema: 1
  /** The log as it was read, and the times of its first and its last request. */
  readonly log: Omit<ReplayResult["log"], "reordered" | "clients" | "from" | "to"> &
    Readonly<Record<"from" | "to", number>>
  /** The fields that tell clients apart. */
  readonly by: readonly string[]
  /** How the suggested rules count. */
  readonly algorithm: WindowAlgorithm
  /** The largest share of clients that the tight candidate may refuse, from 0 to 1, unless a few are far above the others. */
  readonly refuseAtMost: number
  /** All clients with a request. */
  readonly clients: EstimatedNumber
  /**
   * The size of the sample: one of this number of clients was counted. 1 if all clients were counted. Above 1, the
   * numbers of clients are estimates.
   */
  readonly sampledOneOf: number
  /** All requests first, then the requests that have separate limits. */
  readonly groups: readonly SuggestGroup[]
  /** The limit for the whole service, as given. A log cannot show what a service can handle. */
  readonly capacity?: {
    /** Requests per window. */
    readonly limit: number
    /** The window. */
    readonly window: WindowLength
    /** Most requests in its window. */
    readonly peak: number
    /** Requests that it refuses. Null without a second pass. */
    readonly requests: number | null
  }
  /** The few clients that make most of the requests. */
  readonly largest: {
    /** The clients, the largest first. Empty if there are none. */
    readonly clients: readonly {
      /** The client. */
      readonly client: string
      /** Number of its requests, at least. */
      readonly requests: number
      /** How many more requests it may have. */
      readonly error: number
    }[]
    /** Their share of all requests, from 0 to 1. */
    readonly share: number
  }
  /** Remarks for people, the most important first. */
  readonly notes: readonly string[]
}

/** A number with the half-width of its 95% confidence interval, which is 0 if the number is exact. */
export interface EstimatedNumber {
  /** The number. */
  readonly value: number
  /** Half of the width of the interval. */
  readonly error: number
}

/** Requests that have separate limits, and the limits that are suggested for them. */
export interface SuggestGroup {
  /** "all", the name of a rule, or a login such as "POST /login". */
  readonly name: string
  /** Which requests belong to the group. Absent: all. */
  readonly match?: RuleMatch
  /** Present if the path looks like a login: how many requests failed. */
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
    /** The peak that all clients stay within, except those that the tight candidate may refuse. */
    readonly usualPeak: number
    /** The share of clients that stay within it, from 0 to 1. */
    readonly usualShare: number
    /** Number of clients that are far above all others. No candidate makes room for them. */
    readonly far: number
    /** The limits to choose from. Empty if the log has too few requests. */
    readonly candidates: readonly SuggestCandidate[]
    /** The candidates without the few clients that make most of the requests. Present if there are such clients. */
    readonly withoutLargest?: readonly SuggestCandidate[]
    /** True if the log is shorter than three windows. */
    readonly tooShort: boolean
  }[]
}

/** A limit, and what it would have done. */
export interface SuggestCandidate {
  /** How the limit was found. */
  readonly name: "careful" | "balanced" | "tight"
  /** Requests per window. */
  readonly limit: number
  /** Clients that the limit refuses at least once. */
  readonly clients: EstimatedNumber
  /** Their share of all clients, from 0 to 1. */
  readonly clientShare: number
  /** Requests that the limit refuses. Null without a second pass. */
  readonly requests: EstimatedNumber | null
  /** Their share of all requests, from 0 to 1. Null without a second pass. */
  readonly requestShare: number | null
  /** The smallest peak above the limit; null if there is none. */
  readonly nextPeak: number | null
  /** True for the candidate that is a rule in the file. */
  readonly isRule: boolean
}

export type SuggestLog = SuggestResult["log"]
export type SuggestWindow = SuggestGroup["windows"][number]
