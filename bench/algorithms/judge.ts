import type { Policy } from "@sluice/core/stores"
import { Counter, START_MS } from "./counter.ts"
import { ExactLog } from "./exact-log.ts"
import { MostIn } from "./most-in.ts"
import type { Arrivals } from "./traffic.ts"

/** The numbers of requests of one client by their outcome. */
export interface Judged {
  readonly requests: number
  readonly admitted: number
  /** Requests that were admitted although the window that ends there already had as many admissions as the limit. */
  readonly wronglyAdmitted: number
  /** Requests that were refused although the window had fewer admissions than the limit. */
  readonly wronglyRefused: number
  /** The most admissions in any window. */
  readonly most: number
}

/**
 * Passes the requests to a counter, and compares each decision with an exact log of the counter's own admissions.
 * Because the log contains the counter's own admissions, one wrong decision does not make all later ones count as
 * wrong.
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

/** Returns how many of the requests an exact log admits when it makes the decisions itself. */
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
