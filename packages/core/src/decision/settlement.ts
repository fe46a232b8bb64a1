import type { CounterState } from "../algorithms/algorithm.ts"
import { algorithmOf } from "../algorithms/kinds.ts"
import { YEAR_MS } from "../algorithms/most-in-use.ts"
import type { Policy } from "../ground/policy.ts"
import { refundsOf as refundsOfChecks } from "../stores/refunds-of.ts"
import type { Counted, CounterKey, Refund } from "../stores/store.ts"
import type { Receipt } from "./decision-record.ts"
import { costOf, type RuleCheck } from "./rule-check.ts"

/** Returns the receipt for what was taken from some of the counters. */
export function receiptFor(receipt: Receipt, isMeant: (counter: CounterKey) => boolean): Receipt {
  const { ruleChecks, answer } = receipt
  const checks = answer.checks.filter((_, i) => isMeant(ruleChecks[i] as RuleCheck))
  return { ...receipt, ruleChecks: ruleChecks.filter(isMeant), answer: { ...answer, checks } }
}

/** Returns the refunds of all that a decision has taken. */
export function refundsOf({ ruleChecks, answer }: Receipt): Refund[] {
  return refundsOfChecks(ruleChecks, answer.checks)
}

/**
 * Returns the refunds that correct the units taken to the units used, times each rule's own cost. Units that were not
 * used are refunded. Missing units are charged, even above the limit. A shadow rule that would have refused took
 * nothing, so nothing is charged.
 */
export function settlementOf({ ruleChecks, answer }: Receipt, usedUnits: number): Refund[] {
  const refunds: Refund[] = []
  ruleChecks.forEach((ruleCheck, i) => {
    const { policy, partition, cost } = ruleCheck
    const { taken, state, after = state } = answer.checks[i] as Counted
    if (taken !== cost) return
    const used = Math.min(costOf(ruleCheck, usedUnits), Math.max(cost, mostCharged(policy)))
    if (used < cost) refunds.push({ policy, partition, units: cost - used, after })
    if (used > cost)
      refunds.push({ policy, partition, units: cost - used, after: chargedFrom(after, policy) })
  })
  return refunds
}

/**
 * Returns the state that a charge is for. A bucket counts as full when the units were taken. With the bucket's own
 * level, late charges would count nothing. Units that come back in the meantime may be used by other requests, which
 * are charged late too. Each charge would then find that its units have come back.
 */
function chargedFrom(after: CounterState, policy: Policy): CounterState {
  return algorithmOf(policy).filled?.(after, policy) ?? after
}

/**
 * The largest charge. A thousand times as much is still a safe integer, so repeated charges stay within safe integers.
 */
const LARGEST_CHARGE = 2 ** 43

/**
 * Returns the most that is charged in one step: the quota of a year. A larger charge can only be a mistake, and a
 * bucket would keep its client out for longer. A bucket counts in parts of a unit, at least one per second of its
 * window.
 */
export function mostCharged({ limit, windowMs }: Policy): number {
  const ofYear = limit * Math.ceil(YEAR_MS / windowMs)
  return Math.min(ofYear, LARGEST_CHARGE, Math.floor(Number.MAX_SAFE_INTEGER / Math.ceil(windowMs / 1000)))
}
