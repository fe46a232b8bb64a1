import type { CounterState } from "../algorithms/algorithm.ts"
import { algorithmOf, releases } from "../algorithms/kinds.ts"
import { YEAR_MS } from "../algorithms/most-in-use.ts"
import type { Policy } from "../ground/policy.ts"
import { refundsOf as refundsOfChecks } from "../stores/refunds-of.ts"
import type { Counted, CounterKey, Refund } from "../stores/store.ts"
import type { Receipt } from "./decision-record.ts"
import { costOf, type RuleCheck } from "./rule-check.ts"

/** Returns a receipt for the units that were taken from the matching counters. */
export function receiptFor(receipt: Receipt, isMeant: (counter: CounterKey) => boolean): Receipt {
  const { ruleChecks, answer } = receipt
  const checks = answer.checks.filter((_, i) => isMeant(ruleChecks[i] as RuleCheck))
  return { ...receipt, ruleChecks: ruleChecks.filter(isMeant), answer: { ...answer, checks } }
}

/** Returns the refunds of all units that a decision has taken. Permits are released by the ledger that renews them. */
export function refundsOf({ ruleChecks, answer }: Receipt): Refund[] {
  return refundsOfChecks(ruleChecks, answer.checks).filter(({ policy }) => !releases(policy))
}

/** How many of each unit a request has used. Units without a number stay as they were taken. */
export type UsedUnits = ReadonlyMap<string, number>

/**
 * Returns the refunds that change the taken units to the used units, times each rule's own cost. Units that were not
 * used are refunded. Missing units are charged, even above the limit. A shadow rule that would have refused has taken
 * no units, so it is not charged.
 */
export function settlementOf({ ruleChecks, answer }: Receipt, usedUnits: UsedUnits): Refund[] {
  const refunds: Refund[] = []
  ruleChecks.forEach((ruleCheck, i) => {
    const { policy, partition, cost, unit } = ruleCheck
    const usedOf = usedUnits.get(unit)
    const { taken, state, after = state } = answer.checks[i] as Counted
    if (usedOf === undefined || taken !== cost) return
    const used = Math.min(costOf(ruleCheck, usedOf), Math.max(cost, mostCharged(policy)))
    if (used < cost) refunds.push({ policy, partition, units: cost - used, after })
    if (used > cost)
      refunds.push({ policy, partition, units: cost - used, after: chargedFrom(after, policy) })
  })
  return refunds
}

/**
 * Returns the state to which a charge applies. For a charge, a bucket counts as full at the time when the units were
 * taken. With the bucket's real level, late charges would count nothing, because the charged units would seem to have
 * been refilled in the meantime. However, other requests, which are also charged late, may have used the refilled
 * units.
 */
function chargedFrom(after: CounterState, policy: Policy): CounterState {
  return algorithmOf(policy).filled?.(after, policy) ?? after
}

/**
 * The largest charge. A thousand times as much is still a safe integer, so repeated charges stay within safe integers.
 */
const LARGEST_CHARGE = 2 ** 43

/**
 * Returns the most units that are charged in one step, which is the quota of a year. A larger charge can only be a
 * mistake, and a bucket would refuse its client for longer. The result is lower if a bucket could not count so many
 * units exactly. A bucket counts at least one part of a unit per second of its window.
 */
export function mostCharged({ limit, windowMs }: Policy): number {
  const ofYear = limit * Math.ceil(YEAR_MS / windowMs)
  return Math.min(ofYear, LARGEST_CHARGE, Math.floor(Number.MAX_SAFE_INTEGER / Math.ceil(windowMs / 1000)))
}
