import type { Spread } from "../report/statistics.ts"

/** The parts, in the order in which they are measured. */
export const PARTS = ["in-process", "redis", "http", "memory", "bound", "accuracy"] as const
export type Part = (typeof PARTS)[number]

/** The quantity of a figure, with its unit. */
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
  /** Number of requests in flight. Absent if the number does not affect the figure. */
  readonly inFlight?: number
  readonly contender: string
  /** Whether the contender is Sluice. */
  readonly isOurs: boolean
  readonly quantity: Quantity
  /** The guaranteed bound, if there is one. */
  readonly promised?: number
}

/** Returns the spread of a figure that does not vary between runs. */
export function exactly(value: number): Spread {
  return { median: value, least: value, most: value, samples: 1 }
}
