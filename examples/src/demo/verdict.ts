import type { Tally } from "./tally.ts"

/**
 * Tolerance in milliseconds around the end of a window. Times are measured in the client, so the window of a request
 * near the boundary is uncertain.
 */
const EDGE_MS = 20

/** Returns one line for each problem, and nothing if the results of every client agree with the limits. */
export function verdict(tallies: readonly Tally[]): string[] {
  return tallies.flatMap((tally) => {
    const wrong = [...new Set(tally.broken)]
    const { framework, client, rule } = tally
    const told = (what: string): string => `${framework}, ${client}, "${rule}": ${what}`
    // No response contained the limit, which is already recorded as a problem.
    if (tally.limit === 0) return wrong.map(told)
    const [least, most] = expectedAdmissions(tally)
    if (tally.admitted < least || tally.admitted > most) {
      const expected = least === most ? `${least}` : `${least} to ${most}`
      wrong.push(`${tally.admitted} of ${tally.sent} requests were admitted, not ${expected}`)
    }
    if (tally.admitted + tally.refused !== tally.sent)
      wrong.push("some requests were neither admitted nor refused")
    if (tally.waited?.isAdmitted === false) {
      wrong.push(`it waited the ${tally.waited.seconds} s that it was told and was refused again`)
    }
    return wrong.map(told)
  })
}

/**
 * Returns the expected number of admitted requests. The number is exactly the limit within one window. If a boundary
 * lies within the run, units that have returned may be admitted too.
 */
function expectedAdmissions(tally: Tally): [least: number, most: number] {
  const { sent, limit, windowMs, firstSentMs, lastAnsweredMs } = tally
  const least = Math.min(sent, limit)
  const window = (ms: number): number => Math.floor(ms / windowMs)
  if (window(firstSentMs - EDGE_MS) === window(lastAnsweredMs + EDGE_MS)) return [least, least]
  const cameBack = Math.ceil((limit * (lastAnsweredMs - firstSentMs)) / windowMs) + 1
  return [least, Math.min(sent, limit + cameBack)]
}
