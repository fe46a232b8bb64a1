import type { Ask } from "../ask.ts"
import type { Decision } from "../decision.ts"
import type { Line } from "./line.ts"
import type { Lines } from "./lines.ts"
import type { Ticket } from "./ticket.ts"

const NOBODY: readonly Ticket[] = []

/**
 * A ticket that was asking has been refused, so nobody behind it may be granted before it, in any of its lines: whoever is
 * asking there asks in vain. Yields what some of them have been granted already, which has to be given back.
 */
export function stopAsking(ticket: Ticket): readonly Decision[] {
  const given: Decision[] = []
  const stopped = [ticket]
  for (let next = stopped.pop(); next !== undefined; next = stopped.pop()) {
    if (!next.isAsking) continue
    if (next.granted !== undefined) given.push(next.granted)
    next.step = next.granted === undefined ? "vain" : "idle"
    next.granted = undefined
    for (const { line, behind } of next.places) {
      line.asking--
      line.refused()
      if (behind !== undefined) stopped.push(behind.who)
    }
  }
  return given
}

/** Goes to its place in the line of each of these asks, which are all that it waits for, or the one that keeps it waiting. */
export function standInLine(ticket: Ticket, asks: readonly Ask[], lines: Lines): void {
  ticket.standsFor = asks
  ticket.places = asks.map((ask) => lines.of(ask).add(ticket))
  for (const { line } of ticket.places) {
    if (ticket.isImpatient) line.impatient++
    line.fewest = Math.min(line.fewest, ticket.patience.maxWaiting)
  }
}

/** Goes out of each line. */
export function leaveLines(ticket: Ticket): void {
  for (const place of ticket.places) {
    if (ticket.isAsking) place.line.asking--
    if (ticket.isImpatient) place.line.impatient--
    place.line.remove(place)
  }
}

/** Those in line who cannot wait until then, or whom too many wait ahead of. */
export function inVainUntil(line: Line<Ticket>, untilMs: number): readonly Ticket[] {
  // Lines may be long, and there is nothing to look for in most.
  if (line.impatient === 0 && line.waiting <= line.fewest) return NOBODY
  const inVain: Ticket[] = []
  let waiting = line.held.size
  for (let place = line.first; place !== undefined; place = place.behind) {
    const { who } = place
    waiting++
    if (who.step !== "idle" && who.step !== "vain") continue
    if (who.deadlineMs >= untilMs && waiting <= who.patience.maxWaiting) continue
    inVain.push(who)
    waiting--
  }
  return inVain
}
