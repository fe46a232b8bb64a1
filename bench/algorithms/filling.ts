import type { Policy } from "@sluice/core"
import { type Kind, policyOf } from "./kinds.ts"

/** How much a client has asked for when its counter is weighed. */
export type Filling = "one request" | "used up"

export const LIMIT = 500
const WINDOW_MS = 3_600_000
const BUCKETS = 60

export function weighedPolicy(kind: Kind): Policy {
  return policyOf(kind, { limit: LIMIT, windowMs: WINDOW_MS, buckets: BUCKETS })
}

/** Units that a client takes, and how long after the first of them. */
export interface Take {
  readonly afterMs: number
  readonly cost: number
}

/**
 * What brings a counter there. "Used up" is as much as the algorithm can have to keep: 500 units one by one where it keeps
 * each, some in each of 60 sub-windows with a burst in one of them where it keeps these, else all at once.
 */
export function takesOf({ members, takes }: Kind, filling: Filling): readonly Take[] {
  if (filling === "one request") return [{ afterMs: 0, cost: 1 }]
  if (members.algorithm === "sliding-log") {
    return Array.from({ length: LIMIT }, (_, index) => ({ afterMs: index * 7_000, cost: 1 }))
  }
  if (takes.includes("buckets")) {
    const bucketMs = WINDOW_MS / BUCKETS
    // The burst takes another digit for each sub-window.
    return Array.from({ length: BUCKETS + 1 }, (_, index) => {
      return { afterMs: index * bucketMs, cost: index === BUCKETS / 2 ? 70 : 7 }
    })
  }
  return [{ afterMs: 0, cost: LIMIT }]
}

/** Whether the counter keeps more than a few numbers, so that time has to pass to fill it. */
export function keepsParts({ members, takes }: Kind): boolean {
  return members.algorithm === "sliding-log" || takes.includes("buckets")
}
