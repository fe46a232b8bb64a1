import type { Policy } from "@sluice/core/stores"
import { type Kind, policyOf } from "./kinds.ts"

/** How full a client's counter is when its size is measured. */
export type Filling = "one request" | "used up"

export const LIMIT = 500
const WINDOW_MS = 3_600_000
const BUCKETS = 60

export function weighedPolicy(kind: Kind): Policy {
  return policyOf(kind, { limit: LIMIT, windowMs: WINDOW_MS, buckets: BUCKETS })
}

/** The units of one burst of a client, and the time since its first burst. */
export interface Take {
  readonly afterMs: number
  readonly cost: number
}

/**
 * Returns the takes that fill a counter. "Used up" fills the counter with the most data that the algorithm may have
 * to store. A log receives 500 takes of one unit. A counter with sub-windows receives some units in each of its 60
 * sub-windows, with a burst in one. Any other counter receives the whole limit as one burst.
 */
export function takesOf({ members, takes }: Kind, filling: Filling): readonly Take[] {
  if (filling === "one request") return [{ afterMs: 0, cost: 1 }]
  if (members.algorithm === "sliding-log") {
    return Array.from({ length: LIMIT }, (_, index) => ({ afterMs: index * 7_000, cost: 1 }))
  }
  if (takes.includes("buckets")) {
    const bucketMs = WINDOW_MS / BUCKETS
    // The burst makes the stored number of each sub-window one digit longer.
    return Array.from({ length: BUCKETS + 1 }, (_, index) => {
      return { afterMs: index * bucketMs, cost: index === BUCKETS / 2 ? 70 : 7 }
    })
  }
  return [{ afterMs: 0, cost: LIMIT }]
}

/** Whether the counter stores a list of units or sub-windows, so that time must pass to fill it. */
export function keepsParts({ members, takes }: Kind): boolean {
  return members.algorithm === "sliding-log" || takes.includes("buckets")
}
