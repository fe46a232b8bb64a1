import type { Decision } from "../../decision/decision.ts"
import { asksAnew, isHeldAnew } from "./anew.ts"
import { awaitedOf, isAnsweredAtOnce } from "./awaited.ts"
import type { Departures } from "./departures.ts"
import type { Lines } from "./lines.ts"
import type { Ticket } from "./ticket.ts"

/**
 * Other rules are in force, and a ticket that is not being decided just now goes by them: it stands in the lines of its
 * counters under them, behind those who came earlier, and has not been refused by them yet. Its patience is what it was.
 */
export function renew(ticket: Ticket, lines: Lines, departures: Departures): void {
  if (ticket.step === "held") {
    const decision = ticket.granted as Decision
    if (!isHeldAnew(ticket, decision) && !ticket.hasLeft) departures.end(ticket, decision)
    return
  }
  const asks = asksAnew(ticket)
  ticket.isOutdated = false
  // What reads a request is the app's, and may have ended the waiting.
  if (asks === undefined || ticket.hasLeft) return
  ticket.endTurn()
  ticket.step = "idle"
  const awaited = awaitedOf(asks, ticket.patience)
  ticket.goBy(asks, awaited)
  if (isAnsweredAtOnce(asks, awaited)) {
    departures.answer(ticket)
    return
  }
  lines.stand(ticket)
  // A crowd that waited for one counter does not ask all at once for another.
  for (const { line } of ticket.places) line.narrow()
  departures.endInTime(ticket)
}
