import type { Line } from "./line.ts"
import type { Ticket } from "./ticket.ts"

const NOBODY: readonly Ticket[] = []

/**
 * A ticket that was asking has been refused, so nobody behind it may be granted before it, in any of its lines: whoever is
 * asking there asks in vain. Yields it and them; what they have been granted already has to be given back.
 */
export function stopAsking(ticket: Ticket): readonly Ticket[] {
  const stopped: Ticket[] = []
  const next = [ticket]
  for (let who = next.pop(); who !== undefined; who = next.pop()) {
    if (!who.isAsking) continue
    who.step = "vain"
    stopped.push(who)
    for (const { line, behind } of who.places) {
      line.asking--
      line.narrow()
      if (behind !== undefined) next.push(behind.who)
    }
  }
  return stopped
}

/** Those in a line whom too many wait ahead of. */
export function crowdedOut(line: Line<Ticket>): readonly Ticket[] {
  // Lines may be long, and there is nothing to look for in most.
  if (!line.hasUncounted || line.waiting <= line.fewest) return NOBODY
  line.hasUncounted = false
  const crowded: Ticket[] = []
  let ahead = 0
  line.fewest = Number.POSITIVE_INFINITY
  for (let place = line.first; place !== undefined; place = place.behind) {
    const { who } = place
    const { step, patience } = who
    const most = who.mostWaitingIn(line)
    const waiting = ahead + (patience.countsHeld === false ? 0 : line.held.size)
    if (waiting >= most && (step === "idle" || step === "vain")) crowded.push(who)
    else {
      ahead++
      line.fewest = Math.min(line.fewest, most)
    }
  }
  return crowded
}
