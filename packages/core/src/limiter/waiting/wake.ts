import type { CounterKey } from "../../stores/store.ts"
import type { Line } from "./line.ts"
import type { Ticket } from "./ticket.ts"
import { Tried } from "./tried.ts"

/**
 * Those who are to ask again now that units of a line's counter have come back: who sleeps until there are some. `inVain` is
 * who had them in vain, if anybody: those ahead of it in line would mostly not get now what it could not keep for their sake.
 */
export function wakenedBy(
  line: Line<Ticket>,
  counter: CounterKey,
  inVain: Ticket | undefined,
): readonly Ticket[] {
  // Those who are asking just now may have answers that are older than the units.
  line.returnedAt = Tried.made
  // All of them: there may be units for the second too, and nobody would wake it when the first has gone with its own.
  const sleepers = [...line.sleepers]
  if (inVain === undefined || !inVain.places.some((place) => place.line === line)) return sleepers
  return sleepers.filter(({ tried }) => tried.isHelpedBy(inVain.tried, counter))
}
