import type { MaybePromise } from "@sluice/core/kit"
import {
  algorithmOf,
  type Check,
  type Counted,
  type Refund,
  refundsOf,
  type StoreResult,
} from "@sluice/core/stores"
import type { RedisRequest } from "./scripts/script-input.ts"
import { bySlot } from "./topology.ts"

/** The calls that take and refund units for the checks of one slot. */
export interface SlotCalls {
  /** Takes a part of a request, or returns a cached refusal. */
  take(part: RedisRequest): MaybePromise<StoreResult>
  /**
   * Refunds units in the background. If the server is unavailable, the units stay counted until their window has
   * passed, so no limit is exceeded.
   */
  refund(refunds: readonly Refund[]): void
}

/**
 * Takes a request whose checks are in several slots of a cluster, one slot after the other. Refunds the units taken
 * so far if a later slot refuses or fails. Takes from whole-service counters last. All clients share these counters,
 * so other clients would be refused because of units that are later refunded. Until a refund, other clients may be
 * refused too early, but no client is admitted beyond its limit. `slotOf` returns the slot of a key.
 */
export async function takeInTurn(
  { checks, keys }: RedisRequest,
  slotOf: (key: string) => string,
  slots: SlotCalls,
): Promise<StoreResult> {
  const counted: (Counted | undefined)[] = checks.map(() => undefined)
  /** For each check, the time at which its slot decided. */
  const times: number[] = []
  let nowMs = 0
  let granted = true
  let isRemembered = true
  const isShared = (part: readonly number[]) =>
    part.some((place) => (checks[place] as Check).partition === "")
  const parts = bySlot(keys, slotOf).sort((one, other) => Number(isShared(one)) - Number(isShared(other)))
  try {
    for (const part of parts) {
      const answer = await slots.take({
        checks: part.map((place) => checks[place] as Check),
        keys: part.map((place) => keys[place] as string),
        isPart: true,
      })
      part.forEach((place, i) => {
        counted[place] = answer.checks[i]
        times[place] = answer.nowMs
      })
      nowMs = Math.max(nowMs, answer.nowMs)
      granted = answer.granted
      isRemembered &&= answer.isRemembered === true
      if (!granted) break
    }
  } catch (error) {
    slots.refund(refundsOf(checks, counted))
    throw error
  }
  const now = checks.map((check, i) =>
    times[i] === nowMs ? counted[i] : broughtTo(nowMs, check, counted[i]),
  )
  if (granted) return { nowMs, granted, checks: now }
  slots.refund(refundsOf(checks, counted))
  // Omit the states of refunded checks. Also omit the states of other checks of the same counters, which include the
  // refunded units.
  const returned = new Set(keys.filter((_, i) => (counted[i]?.taken ?? 0) > 0))
  const told = now.map((one, i) => (returned.has(keys[i] as string) ? undefined : one))
  return { nowMs, granted, checks: told, ...(isRemembered && { isRemembered }) }
}

/**
 * Returns a check's state at `nowMs`. Each slot decides at a different time, by its server's clock, but the result of
 * a request has only one time, the latest.
 */
function broughtTo(nowMs: number, { policy }: Check, counted: Counted | undefined): Counted | undefined {
  if (counted === undefined) return undefined
  const { state: after, taken, ageMs } = counted
  // Return the old state as `after`, because the new state may not contain the window or bucket from which the units
  // were taken.
  const state = algorithmOf(policy).at(after, policy, nowMs)
  return { state, taken, after, ...(ageMs !== undefined && { ageMs }) }
}
