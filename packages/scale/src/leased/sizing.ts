import { algorithmOf, bucketMsOf, type CounterState, countsByPart, type Policy } from "@sluice/core/stores"

// Terms: to book is to take units ahead of time. To hold is to keep booked units that no request has used yet. A part
// is the period of store time in which an algorithm counts all units alike: a window, a sub-window or a refill
// period.

/**
 * A lease lasts at most this fraction of the window, which bounds the units that an evenly refilling bucket admits
 * above its limit.
 */
const LEASES_PER_WINDOW = 20
/** A booking takes at most this fraction of the remaining units, so that units remain for other processes. */
const BOOKINGS_OF_REST = 16
/** Minimum size of a booking, because a booking of a single unit saves nothing. */
const SMALLEST_BOOKING = 2

const SHORTEST_HOLD_OFF_MS = 10
/** Below this number of units granted between two refusals, the hold-off is doubled. */
const FEW_GRANTED = 8
/** Above this number of units granted between two refusals, the hold-off is halved. */
const MANY_GRANTED = 64

/** True if units of the policy's counter may be booked ahead of time. */
export function isLeasable(
  policy: Policy,
  { leaseMs, leastLimit }: { readonly leaseMs: number; readonly leastLimit: number },
): boolean {
  return policy.limit >= leastLimit && countsByPart(policy) && leaseMsOf(policy, leaseMs) >= 1
}

/**
 * Returns T, the milliseconds for which unused units are held after a booking. T is at most a twentieth of the
 * window.
 */
export function leaseMsOf({ windowMs }: Policy, longestMs: number): number {
  return Math.min(longestMs, Math.floor(windowMs / LEASES_PER_WINDOW))
}

/**
 * Returns the end of the current part of a counter, in the server's time. Undefined for a bucket that refills evenly, which
 * has no parts.
 */
export function partEndMs(policy: Policy, { startMs }: CounterState): number | undefined {
  if (policy.algorithm === "token-bucket" && policy.refill !== "periodic") return undefined
  // A calendar period, which is often shorter than the window, is empty at its end.
  if (policy.periods !== undefined)
    return algorithmOf(policy).emptyAtMs({ startMs, current: 1, previous: 0 }, policy)
  return startMs + (policy.buckets === undefined ? policy.windowMs : bucketMsOf(policy))
}

/**
 * Returns the policy of a booking. The policy has the same counter, but takes no units above the limit and does not
 * count refusals.
 */
export function withoutExtras(policy: Policy): Policy {
  const { extra: _, countRejected: __, ...plain } = policy
  return plain
}

/**
 * Returns the number of units to book, or 0. A booking raises the held units to the demand. Near the end of a part,
 * the booking covers only the demand until this end. With a demand of 100, 30 held and 800 remaining units, the
 * result is 50, because that is a sixteenth of 800.
 */
export function sizeOf({
  demand,
  held,
  left,
  restMs,
  leaseMs,
}: {
  /** Units that requests in this process asked of the counter within T. */
  readonly demand: number
  readonly held: number
  /** Units of the capacity that are not in use. */
  readonly left: number
  /** Milliseconds to the end of the part. */
  readonly restMs: number
  readonly leaseMs: number
}): number {
  const lacking = Math.ceil(demand * Math.min(1, restMs / leaseMs)) - held
  const size = Math.min(lacking, Math.floor(left / BOOKINGS_OF_REST))
  return size >= SMALLEST_BOOKING ? size : 0
}

/**
 * Returns the length of the hold-off after a refusal, in milliseconds. `beforeMs` is the previous hold-off, or 0.
 * `granted` is the number of units that the store has granted this process since the previous refusal.
 */
export function nextHoldOffMs(beforeMs: number, granted: number, leaseMs: number): number {
  const longestMs = leaseMs / 2
  const shortestMs = Math.min(SHORTEST_HOLD_OFF_MS, longestMs)
  if (beforeMs === 0) return shortestMs
  if (granted < FEW_GRANTED) return Math.min(2 * beforeMs, longestMs)
  if (granted > MANY_GRANTED) return Math.max(beforeMs / 2, shortestMs)
  return beforeMs
}
