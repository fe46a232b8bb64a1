import type { Spread } from "../report/statistics.ts"

/** What is measured, in the order in which it is. */
export const PARTS = ["in-process", "redis", "http", "memory", "bound", "accuracy"] as const
export type Part = (typeof PARTS)[number]

/** What a figure counts, with its unit. */
export type Quantity =
  | "decisions a second"
  | "requests a second"
  | "p50 ms"
  | "p99 ms"
  | "Node CPU us"
  | "Redis CPU us"
  | "bytes a client"
  | "most admitted in any window, times the limit"
  | "share of what an exact log admits"

/** One figure of a contender in one workload, over all rounds. */
export interface Measurement extends Spread {
  readonly part: Part
  readonly workload: string
  /** Requests at a time; absent where that is no matter. */
  readonly inFlight?: number
  readonly contender: string
  /** Whether the contender is Sluice. */
  readonly isOurs: boolean
  readonly quantity: Quantity
  /** What is promised of it, where something is. */
  readonly promised?: number
}

/** Of a figure that comes out the same each time. */
export function exactly(value: number): Spread {
  return { median: value, least: value, most: value, samples: 1 }
}
