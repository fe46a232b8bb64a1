import type { Policy } from "@sluice/core"
import { Counter, START_MS } from "./counter.ts"
import { ExactLog } from "./exact-log.ts"
import { MostIn } from "./most-in.ts"
import type { Arrivals } from "./traffic.ts"

/** Requests of one client, by what became of them. */
export interface Judged {
  readonly requests: number
  readonly admitted: number
  /** Admitted although as many as the limit had been in the window that ends there. */
  readonly wronglyAdmitted: number
  /** Refused although fewer than the limit had been. */
  readonly wronglyRefused: number
  /** The most that were admitted in any window. */
  readonly most: number
}

/**
 * Lets a counter decide the requests, and an exact log of what it has admitted itself judge it: so one wrong decision does
 * not make wrong ones of all that come after it.
 */
export function judge(policy: Policy, arrivals: Arrivals): Judged {
  const { limit, windowMs } = policy
  const counter = new Counter(policy)
  const log = new ExactLog(windowMs, 3 * limit)
  const any = new MostIn({ lengthMs: windowMs, isAligned: false })
  let admitted = 0
  let wronglyAdmitted = 0
  let wronglyRefused = 0
  for (const atMs of arrivals) {
    const nowMs = START_MS + atMs
    const hasRoom = log.count(nowMs) < limit
    if (counter.take(nowMs, 1).granted) {
      admitted++
      if (!hasRoom) wronglyAdmitted++
      log.add(nowMs)
      any.add({ atMs: nowMs, units: 1 })
    } else if (hasRoom) wronglyRefused++
  }
  return { requests: arrivals.length, admitted, wronglyAdmitted, wronglyRefused, most: any.most }
}

/** How many of the requests an exact log admits that decides itself. */
export function admittedByLog(limit: number, windowMs: number, arrivals: Arrivals): number {
  const log = new ExactLog(windowMs, limit)
  let admitted = 0
  for (const atMs of arrivals) {
    if (log.count(atMs) >= limit) continue
    log.add(atMs)
    admitted++
  }
  return admitted
}
