import { REQUESTS } from "../deciding/asked-request.ts"
import { invalidArgument } from "../status-error.ts"

/** Amounts by the name of their unit. */
export type Units = ReadonlyMap<string, number>
export const NO_UNITS: Units = new Map()

/** Maximum number of units in a message. A request is about one thing, and each name costs memory. */
const MOST_UNITS = 16

/** Why a field cannot name a unit. */
type Refused = Readonly<Record<string, string>>

/** For the units of a request. */
export const BESIDES_COST: Refused = { [REQUESTS]: 'is not a unit here; use "cost"' }
/** For the units that a request has used. */
export const BESIDES_PERMITS: Refused = {
  "concurrent-requests": "is not a unit here; a settlement always gives permits back",
}

/** Reads the units in a field of a message. Throws StatusError. */
export function unitsOf(given: Readonly<Record<string, bigint>>, field: string, refused: Refused): Units {
  // Nearly always there are none.
  let units: Map<string, number> | undefined
  for (const name in given) {
    const description = refused[name]
    if (description !== undefined) throw invalidArgument({ field: `${field}.${name}`, description })
    units ??= new Map()
    if (units.size === MOST_UNITS)
      throw invalidArgument({ field, description: `has more than ${MOST_UNITS} units` })
    units.set(name, exact(given[name] as bigint, `${field}.${name}`))
  }
  return units ?? NO_UNITS
}

/** Returns the amount as a number. Throws StatusError if it is too large. */
export function exact(amount: bigint, field: string): number {
  if (amount <= BigInt(Number.MAX_SAFE_INTEGER)) return Number(amount)
  throw invalidArgument({ field, description: `${amount} is too large; it must be below 2^53` })
}
