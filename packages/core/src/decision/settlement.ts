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
  return ruleChecks.flatMap((ruleCheck, i) => {
    const { taken, state, after = state } = answer.checks[i] as Counted
    return taken === ruleCheck.cost ? settlementOfOne(ruleCheck, after, usedUnits) : []
  })
}

/** A check whose units were taken. */
export type TakenCheck = Pick<RuleCheck, "policy" | "partition" | "cost" | "unit" | "unitCost">

function settlementOfOne(check: TakenCheck, after: CounterState, usedUnits: UsedUnits): Refund[] {
  const { policy, partition, cost, unit } = check
  const usedOf = usedUnits.get(unit)
  if (usedOf === undefined) return []
  const used = Math.min(costOf(check, usedOf), Math.max(cost, mostCharged(policy)))
  if (used === cost) return []
  return [{ policy, partition, units: cost - used, after: used < cost ? after : chargedFrom(after, policy) }]
}

/**
 * Returns the refunds and charges that settle what was taken from one counter of a reservation. Permits are released,
 * because the request has ended. With `isRefund`, all units go back.
 */
export function correctionsOf(
  check: TakenCheck,
  after: CounterState,
  usedUnits: UsedUnits,
  isRefund: boolean,
): Refund[] {
  const { policy, partition, cost } = check
  if (!isRefund && !releases(policy)) return settlementOfOne(check, after, usedUnits)
  return cost === 0 ? [] : [{ policy, partition, units: cost, after }]
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
