import type { CounterKey } from "../../stores/store.ts"
import type { Line } from "./line.ts"
import type { Ticket } from "./ticket.ts"
import { Tried } from "./tried.ts"

/**
 * Who is to ask again now that units of a line's counter have come back: who sleeps until there are some. `inVain` is who had
 * them in vain, if anybody: those ahead of it in line would mostly not get now what it could not keep for their sake.
 */
export function wakenedBy(
  line: Line<Ticket>,
  counter: CounterKey,
  inVain: Ticket | undefined,
): Ticket | undefined {
  line.returnedAt = Tried.made
  // Ahead of it may be some who are asking: their answers may be older than the units, and may be about another counter.
  const sleeper = line.find(({ step }) => step === "sleeping")
  if (inVain === undefined || !inVain.places.some((place) => place.line === line)) return sleeper
  return sleeper?.tried.isHelpedBy(inVain.tried, counter) ? sleeper : undefined
}
