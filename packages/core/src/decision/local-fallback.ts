import { readsMember } from "../algorithms/kinds.ts"
import { type Clock, soundTime } from "../ground/clock.ts"
import { capacityOf, type Policy } from "../ground/policy.ts"
import { type MemoryStore, memoryStore } from "../stores/memory/memory-store.ts"
import type { Counted, StoreResult } from "../stores/store.ts"
import type { Decision } from "./decision.ts"
import { type DecisionMaker, DecisionRecord, RETRY_WHEN_CLOSED_MS } from "./decision-record.ts"
import { explainCounted, explainUncounted } from "./explain.ts"
import { explainSettled, isCounted } from "./explain-answer.ts"
import { partPenalties, underPenalty, withPenalties } from "./penalties.ts"
import type { OnStoreAnswer, RuleCheck } from "./rule-check.ts"

/** An outage of the store must not become a lack of memory: some 5 MB at the most. */
const MAX_KEYS = 100_000

/**
 * Decides without the shared store, as each rule's `onStoreFailure` says: any "deny" refuses, "local" counts here with
 * this instance's part of the limit, "allow" admits uncounted. These counts never reach the shared store.
 */
export class LocalFallback {
  readonly #by: DecisionMaker
  readonly #instances: number
  readonly #store: MemoryStore

  /** `by` is whose store is gone, and who decides. */
  constructor(by: DecisionMaker, instances: number, clock: Clock) {
    this.#by = by
    this.#instances = instances
    // The clock itself may be what is broken.
    this.#store = memoryStore({ maxKeys: MAX_KEYS, clock: { now: () => soundTime(clock) } })
  }

  readonly #share = (ruleCheck: RuleCheck): RuleCheck => {
    if (this.#instances === 1) return ruleCheck
    return {
      ...ruleCheck,
      policy: shareOf(ruleCheck.policy, ruleCheck.leastCost ?? ruleCheck.cost, this.#instances),
    }
  }

  decide(ruleChecks: readonly RuleCheck[], peeked: boolean, onAnswer?: OnStoreAnswer): Decision {
    const closing = ruleChecks.filter((ruleCheck) => ruleCheck.onStoreFailure === "deny" && !ruleCheck.shadow)
    if (closing.length > 0) {
      const checks = closing.map((ruleCheck) =>
        explainUncounted(ruleCheck, "store-failure", RETRY_WHEN_CLOSED_MS),
      )
      return new DecisionRecord(checks, true, undefined)
    }
    const local = ruleChecks.filter(isCountedHere).map(this.#share)
    const all = withPenalties(local)
    const [first] = peeked ? this.#store.peek([all]) : this.#store.take([all])
    const { answer, penalties } = partPenalties(all, first as StoreResult)
    const { nowMs, checks } = answer
    const isTaken = answer.granted && !peeked
    onAnswer?.(local, answer)
    let counted = 0
    const explained = ruleChecks.map((ruleCheck) => {
      if (!isCounted(ruleCheck)) return explainSettled(ruleCheck)
      if (!isCountedHere(ruleCheck)) return explainUncounted(ruleCheck, undefined, 0)
      const i = counted++
      const check = explainCounted(local[i] as RuleCheck, checks[i] as Counted, nowMs, isTaken)
      return underPenalty(check, ruleCheck, penalties[i], nowMs)
    })
    const hasTaken = isTaken && local.length > 0
    return new DecisionRecord(
      explained,
      true,
      hasTaken ? { by: this.#by, store: this.#store, ruleChecks: local, answer } : undefined,
    )
  }
}

function isCountedHere(ruleCheck: RuleCheck): boolean {
  return isCounted(ruleCheck) && ruleCheck.onStoreFailure === "local"
}

/**
 * The part of a policy that one of so many instances admits by itself, for a request that costs so much at least. Nobody
 * within the limit is refused for ever for asking the wrong instance: there is always room for this one request, if the whole
 * limit has it, or what is admitted above it.
 *
 * What comes back to a bucket in a window is the instance's part whatever a request costs, so dear ones wait longer.
 */
function shareOf(policy: Policy, cost: number, instances: number): Policy {
  const part = (units: number): number => Math.floor(units / instances)
  const whole = capacityOf(policy)
  const capacity = Math.min(whole, Math.max(1, part(whole), cost))
  const { limit, extra } = policy
  const sized = readsMember(policy.algorithm, "burst")
    ? { limit: Math.min(limit, Math.max(1, part(limit))), burst: capacity }
    : { limit: capacity }
  if (extra === undefined) return { ...policy, ...sized }
  return { ...policy, ...sized, extra: Math.max(part(extra), Math.min(extra, cost - capacity)) }
}
