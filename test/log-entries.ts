import type { CounterState } from "../packages/core/src/algorithms/algorithm.ts"
import { entryWidth, FIRST, logOf, timeAt, unitsAt } from "../packages/core/src/algorithms/packed-log.ts"
import type { Policy } from "../packages/core/src/ground/policy.ts"

export type LogEntries = readonly (readonly [atMs: number, units: number])[]

/** Returns the entries of a sliding log, regardless of the number of digits per entry. */
export function entriesOf(state: CounterState, policy: Policy): LogEntries {
  const log = logOf(state, policy)
  const places = Array.from(
    { length: (log.end - FIRST) / entryWidth(log) },
    (_, nth) => FIRST + nth * entryWidth(log),
  )
  return places.map((place) => [timeAt(log, place), unitsAt(log, place)])
}
