import { algorithmOf } from "../../algorithms/kinds.ts"
import { StoreUnavailableError } from "../../ground/errors.ts"
import type { MaybePromise } from "../../ground/maybe-promise.ts"
import type { Check, Counted, Refund, StoreResult } from "../store.ts"
import type { RedisRequest } from "./scripts/script-input.ts"

/** How the checks of one slot are taken, and refunded. */
export interface SlotCalls {
  /** Takes a part, or answers with a refusal that is remembered. */
  take(part: RedisRequest): MaybePromise<readonly StoreResult[]>
  /** Refunds units, without a caller that waits for it. */
  refund(refunds: readonly Refund[]): void
}

/** The checks of one slot, by their places in the request. */
type SlotChecks = readonly number[]

/**
 * Takes a request whose checks are in several slots of a cluster: one slot after the other, and what was taken is given
 * back when a later one refuses or fails. Whole-service counters come last: they are the ones that everybody shares, and
 * what is held there for a moment in vain would refuse others. Meanwhile others may be refused too early; nobody is
 * admitted too often. `slotOf` yields what keys of one slot have in common.
 */
export async function takeInTurn(
  { checks, keys }: RedisRequest,
  slotOf: (key: string) => string,
  slots: SlotCalls,
): Promise<readonly StoreResult[]> {
  const counted: (Counted | undefined)[] = checks.map(() => undefined)
  /** By check the time at which its slot decided. */
  const times: number[] = []
  let nowMs = 0
  let granted = true
  let isRemembered = true
  try {
    for (const part of partsOf(checks, keys, slotOf)) {
      const [answer] = await slots.take({
        checks: part.map((place) => checks[place] as Check),
        keys: part.map((place) => keys[place] as string),
        isPart: true,
      })
      if (answer === undefined) {
        throw new StoreUnavailableError("Redis did not answer a part of the request.", {
          kind: "invalid-answer",
        })
      }
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
    refundTaken(checks, counted, slots)
    throw error
  }
  const now = checks.map((check, i) =>
    times[i] === nowMs ? counted[i] : broughtTo(nowMs, check, counted[i]),
  )
  if (granted) return [{ nowMs, granted, checks: now }]
  refundTaken(checks, counted, slots)
  // What was refunded is not told, nor what another check of the same counter saw of it.
  const returned = new Set(keys.filter((_, i) => (counted[i]?.taken ?? 0) > 0))
  const told = now.map((one, i) => (returned.has(keys[i] as string) ? undefined : one))
  return [{ nowMs, granted, checks: told, ...(isRemembered && { isRemembered }) }]
}

function partsOf(
  checks: readonly Check[],
  keys: readonly string[],
  slotOf: (key: string) => string,
): SlotChecks[] {
  const parts = new Map<string, number[]>()
  keys.forEach((key, place) => {
    const slot = slotOf(key)
    const part = parts.get(slot) ?? []
    part.push(place)
    parts.set(slot, part)
  })
  const isShared = (part: SlotChecks) => part.some((place) => (checks[place] as Check).partition === "")
  return [...parts.values()].sort((one, other) => Number(isShared(one)) - Number(isShared(other)))
}

/** Nobody waits for it: a server that is gone keeps the units until their window has passed, which is the safe side. */
function refundTaken(
  checks: readonly Check[],
  counted: readonly (Counted | undefined)[],
  slots: SlotCalls,
): void {
  const refunds = refundsOf(checks, counted)
  if (refunds.length > 0) slots.refund(refunds)
}

/** Returns the refunds of the units that the checks of a request took, as the slots answered it. */
export function refundsOf(checks: readonly Check[], counted: readonly (Counted | undefined)[]): Refund[] {
  return checks.flatMap(({ policy, partition }, i) => {
    const one = counted[i]
    return one !== undefined && one.taken > 0
      ? [{ policy, partition, units: one.taken, after: one.state }]
      : []
  })
}

/** Servers are asked one after the other and have clocks of their own, and one answer has one time: the latest. */
function broughtTo(nowMs: number, { policy }: Check, counted: Counted | undefined): Counted | undefined {
  if (counted === undefined) return undefined
  const { state: after, taken } = counted
  // A state that has been brought on does not tell any more which window or bucket the units were taken in.
  return { state: algorithmOf(policy).at(after, policy, nowMs), taken, after }
}
