import type { Decision } from "../decision.ts"
import { asksAnew, isHeldAnew } from "./anew.ts"
import { awaitedOf, isAnsweredAtOnce } from "./awaited.ts"
import type { Departures } from "./departures.ts"
import type { Lines } from "./lines.ts"
import type { Ticket } from "./ticket.ts"

/**
 * Other rules are in force, and a ticket that is not being decided just now goes by them: it stands in the lines of its
 * counters under them, behind those who came earlier, and has not been refused by them yet. Its patience is what it was.
 * Yields whether it waits there.
 */
export function renew(ticket: Ticket, lines: Lines, departures: Departures): boolean {
  if (ticket.step === "held") {
    const decision = ticket.granted as Decision
    if (!isHeldAnew(ticket, decision) && !isDone(ticket)) departures.end(ticket, decision)
    return false
  }
  const asks = asksAnew(ticket)
  ticket.isOutdated = false
  // What reads a request is the app's, and may have ended the waiting.
  if (asks === undefined || isDone(ticket)) return !isDone(ticket)
  ticket.endTurn()
  ticket.step = "idle"
  const awaited = awaitedOf(asks, ticket.patience)
  ticket.goBy(asks, awaited)
  if (isAnsweredAtOnce(asks, awaited)) {
    departures.answer(ticket)
    return false
  }
  lines.stand(ticket)
  // A crowd that waited for one counter does not ask all at once for another.
  for (const { line } of ticket.places) line.narrow()
  departures.endInTime(ticket)
  return true
}

function isDone({ step }: Ticket): boolean {
  return step === "done"
}
