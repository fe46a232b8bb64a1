import type { Verdict } from "../../limiter/late-decision.ts"

/** One response header line: field name and value. */
export type HeaderLine = readonly [name: string, value: string]

/** What a rule contributes to the rate limit headers. */
export interface HeaderPolicy {
  /** Printable ASCII. */
  readonly name: string
  /** Quota units per window; undefined when a function yields it per request. */
  readonly limit: number | undefined
  readonly windowMs: number
  /** A shadow rule is in no header. */
  readonly shadow: boolean
}

/**
 * The rate limit headers of one decision, none when no rule applied. `nowMs` yields the present in epoch
 * milliseconds and is asked only where a header names an instant.
 */
export type HeaderWriter = (verdict: Verdict, nowMs: () => number) => readonly HeaderLine[]
