import type { RuleMatch } from "@sluice/core"
import type { CandidateName } from "./candidates.ts"
import type { Capacity, WindowLength } from "./window-length.ts"
import type { WindowAlgorithm } from "./window-peaks.ts"

/** Suggested limits: what `--json` prints and what the rules file is made from. Times are epoch milliseconds. */
export interface SuggestResult {
  readonly schema: 1
  readonly log: SuggestLog
  readonly by: readonly string[]
  readonly algorithm: WindowAlgorithm
  /** The largest share of clients that the tight candidate may refuse, from 0 to 1, unless a few are far above the others. */
  readonly refuseAtMost: number
  /** All clients with a request. */
  readonly clients: EstimatedNumber
  /** One of how many clients was counted. 1: all. Above 1, the numbers of clients are estimates. */
  readonly sampledOneOf: number
  readonly groups: readonly SuggestGroup[]
  readonly capacity?: SuggestCapacity
  /** The few clients that make most of the requests, and their share from 0 to 1. Empty if there are none. */
  readonly largest: {
    readonly clients: readonly {
      readonly client: string
      readonly requests: number
      readonly error: number
    }[]
    readonly share: number
  }
  /** Remarks for people, the most important first. */
  readonly notes: readonly string[]
}

export interface SuggestLog {
  readonly files: readonly { readonly name: string; readonly format: string; readonly lines: number }[]
  readonly lines: number
  readonly requests: number
  readonly unparsed: number
  readonly skipped: number
  readonly late: number
  readonly tooManyRequests: number
  readonly from: number
  readonly to: number
  readonly resolutionMs: number
}

/** A number with the half-width of its 95% confidence interval, which is 0 if the number is exact. */
export interface EstimatedNumber {
  readonly value: number
  readonly error: number
}

export interface SuggestGroup {
  /** "all", the name of a rule, or a login such as "POST /login". */
  readonly name: string
  readonly match?: RuleMatch
  /** Present if the path looks like a login: how many requests failed. */
  readonly failed?: number
  readonly requests: number
  readonly clients: EstimatedNumber
  readonly windows: readonly SuggestWindow[]
}

export interface SuggestWindow {
  readonly window: WindowLength
  readonly highestPeak: number
  /** The peak that all clients stay within, except those that the tight candidate may refuse. */
  readonly usualPeak: number
  /** The share of clients that stay within it, from 0 to 1. */
  readonly usualShare: number
  /** Number of clients that are far above all others. No candidate makes room for them. */
  readonly far: number
  readonly candidates: readonly SuggestCandidate[]
  /** The candidates without the few clients that make most of the requests. Present if there are such clients. */
  readonly withoutLargest?: readonly SuggestCandidate[]
  /** True if the log is shorter than three windows. */
  readonly tooShort: boolean
}

export interface SuggestCandidate {
  readonly name: CandidateName
  readonly limit: number
  /** Clients that the limit refuses at least once, and their share from 0 to 1. */
  readonly clients: EstimatedNumber
  readonly clientShare: number
  /** Requests that the limit refuses, and their share from 0 to 1. Null without a second pass. */
  readonly requests: EstimatedNumber | null
  readonly requestShare: number | null
  /** The smallest peak above the limit; null if there is none. */
  readonly nextPeak: number | null
  /** True for the candidate that is a rule in the file. */
  readonly isRule: boolean
}

/** A limit for the whole service, as given. A log cannot show what a service can handle. */
export interface SuggestCapacity extends Capacity {
  /** Most requests in its window. */
  readonly peak: number
  /** Requests that it refuses. Null without a second pass. */
  readonly requests: number | null
}
