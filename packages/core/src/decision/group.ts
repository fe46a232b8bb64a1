import type { Store, StoreResult } from "../stores/store.ts"
import { type Decider, decidedWithoutCounters } from "./decider.ts"
import type { Decision } from "./decision.ts"
import { DecisionRecord } from "./decision-record.ts"
import { storeChecksOf } from "./explain-answer.ts"
import type { RuleCheck } from "./rule-check.ts"

/** A request of a group, with its rule checks and the decider of its limiter. */
export interface GroupMember {
  readonly decider: Decider
  readonly ruleChecks: readonly RuleCheck[]
}

/** A member whose counters decide, with the checks that the store receives for it. */
interface CountedMember extends GroupMember {
  readonly storeChecks: readonly RuleCheck[]
  /** Index of the member's decision in the result. */
  readonly index: number
}

/**
 * Takes the units of all members in one store call, or refuses and takes no units. All deciders must have the same
 * store, and all checks must have different counters. Returns the decisions in the order of the members. If one
 * member is refused, the others are refused with "group". Never throws and never rejects. If the store fails, each
 * member is decided without the store, and all units are refunded if one member is refused.
 */
export async function takeAll(members: readonly GroupMember[]): Promise<readonly Decision[]> {
  const decisions = members.map(({ ruleChecks }) => decidedWithoutCounters(ruleChecks))
  if (decisions.some((decision) => decision?.allowed === false)) {
    return together(decisions.map((decision) => decision ?? NOT_ASKED))
  }
  const counted: CountedMember[] = members.flatMap((member, index) =>
    decisions[index] === undefined
      ? [{ ...member, storeChecks: storeChecksOf(member.ruleChecks), index }]
      : [],
  )
  const [first] = counted
  if (first === undefined) return decisions as readonly Decision[]
  const made = await decided(first.decider.store, counted)
  for (const [i, { index }] of counted.entries()) decisions[index] = made[i]
  return together(decisions as readonly Decision[])
}

async function decided(store: Store, counted: readonly CountedMember[]): Promise<readonly Decision[]> {
  const checks = counted.flatMap(({ storeChecks }) => storeChecks)
  const timeoutMs = Math.min(...counted.map(({ decider }) => decider.storeTimeoutMs))
  try {
    return explained(await store.take(checks, timeoutMs), counted)
  } catch (error) {
    return withoutStore(counted, error)
  }
}

/** A placeholder for a decision that needs no store call, because another request of its group is refused. */
const NOT_ASKED: Decision = new DecisionRecord([], false, undefined)

/** Returns the decisions of the members for the store's result of all their checks. */
function explained(answer: StoreResult, counted: readonly CountedMember[]): readonly Decision[] {
  let from = 0
  const decisions = counted.map(({ decider, ruleChecks, storeChecks }) => {
    const own = { ...answer, checks: answer.checks.slice(from, from + storeChecks.length) }
    from += storeChecks.length
    const decision = decider.explain(own, ruleChecks, storeChecks, false)
    // A member of a refused group may fit by itself. In that case, explain its counters as in a peek.
    return decision.allowed === answer.granted
      ? decision
      : decider.explain({ ...own, granted: true }, ruleChecks, storeChecks, true)
  })
  for (const { decider } of counted) decider.answered(answer)
  return decisions
}

function withoutStore(counted: readonly CountedMember[], error: unknown): readonly Decision[] {
  const decisions = counted.map(({ decider, ruleChecks }) => decider.degrade(error, ruleChecks, false))
  if (decisions.every(({ allowed }) => allowed)) return decisions
  // The fallback counts in this process, so these refunds take effect immediately. With a filter, they are not reported
  // as corrections, because the group was not admitted.
  for (const [i, decision] of decisions.entries()) {
    void counted[i]?.decider.corrections.refundInBackground(decision, () => true)
  }
  return decisions
}

/**
 * Returns the decisions of a group. If some decisions refuse, all others also refuse, with the longest wait of the
 * refusing decisions.
 */
function together(decisions: readonly Decision[]): readonly Decision[] {
  const refusing = decisions.filter(({ allowed }) => !allowed)
  if (refusing.length === 0) return decisions
  const retryAfterMs = Math.max(...refusing.map((decision) => decision.retryAfterMs))
  return decisions.map((decision) =>
    decision.allowed ? DecisionRecord.refusedByGroup(decision, retryAfterMs) : decision,
  )
}
