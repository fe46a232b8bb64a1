import type { Tally } from "./tally.ts"

/** Clocks are read beside the server, not in it: this near to a window's boundary its side is not known. */
const EDGE_MS = 20

/** What was not as promised, in a line each; nothing when all of it was. */
export function verdict(tallies: readonly Tally[]): string[] {
  return tallies.flatMap((tally) => {
    const wrong = [...new Set(tally.broken)]
    const { framework, client, rule } = tally
    const told = (what: string): string => `${framework}, ${client}, "${rule}": ${what}`
    // Nobody has said what the limit is, which has been noted by then.
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

/** Exactly the limit within one window; where a boundary was crossed, also what has come back since. */
function expectedAdmissions(tally: Tally): [least: number, most: number] {
  const { sent, limit, windowMs, firstSentMs, lastAnsweredMs } = tally
  const least = Math.min(sent, limit)
  const window = (ms: number): number => Math.floor(ms / windowMs)
  if (window(firstSentMs - EDGE_MS) === window(lastAnsweredMs + EDGE_MS)) return [least, least]
  const cameBack = Math.ceil((limit * (lastAnsweredMs - firstSentMs)) / windowMs) + 1
  return [least, Math.min(sent, limit + cameBack)]
}
