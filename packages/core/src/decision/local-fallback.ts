import type { CounterState } from "../algorithms/algorithm.ts"
import { readsMember, releases } from "../algorithms/kinds.ts"
import { type Clock, soundTime } from "../ground/clock.ts"
import { capacityOf, ceilingOf, type Policy } from "../ground/policy.ts"
import { type MemoryStore, memoryStore } from "../stores/memory/memory-store.ts"
import type { Counted, CounterKey } from "../stores/store.ts"
import { peekResult } from "../stores/take-together.ts"
import type { Decision } from "./decision.ts"
import { type DecisionMaker, DecisionRecord, decisionWith, RETRY_WHEN_CLOSED_MS } from "./decision-record.ts"
import { explainCounted, explainUncounted } from "./explain.ts"
import { explainUncountable, isCounted } from "./explain-answer.ts"
import { separatePenalties, underPenalty, withPenalties } from "./penalties.ts"
import type { OnStoreAnswer, RuleCheck } from "./rule-check.ts"

/** Number of rules that a log line describes. */
const MOST_DESCRIBED = 3

/** A state that contains no permits, so that a renewal adds all of them. */
const UNCOUNTED: CounterState = { startMs: 0, current: 0, previous: 0 }

/** Limits the memory that the fallback can use in an outage to about 5 MB. */
const MAX_KEYS = 100_000

/**
 * Decides without the shared store, according to each rule's `onStoreFailure`. Any rule with "deny" refuses. A rule
 * with "local" counts in this process, with this instance's share of the limit. A rule with "allow" admits without
 * counting. The counts of the fallback are never sent to the shared store.
 */
export class LocalFallback {
  readonly #by: DecisionMaker
  readonly #instances: number
  readonly #store: MemoryStore

  /** `by` is the decider whose store is unavailable. */
  constructor(by: DecisionMaker, instances: number, clock: Clock) {
    this.#by = by
    this.#instances = instances
    // Use `soundTime`, because the clock itself may be broken.
    this.#store = memoryStore({ maxKeys: MAX_KEYS, clock: { now: () => soundTime(clock) } })
  }

  readonly #share = (ruleCheck: RuleCheck): RuleCheck => {
    if (this.#instances === 1) return ruleCheck
    return {
      ...ruleCheck,
      policy: shareOf(ruleCheck.policy, ruleCheck.leastCost ?? ruleCheck.cost, this.#instances),
    }
  }

  /** Describes what these rules do without the store, the strictest rule first. */
  inForce(ruleChecks: readonly RuleCheck[]): string {
    const rules = ruleChecks
      .filter((ruleCheck) => isCounted(ruleCheck) && !ruleCheck.shadow)
      .map((ruleCheck): [number, string] => {
        const { policy, onStoreFailure } = ruleCheck
        const of = `under rule "${policy.name}"`
        if (onStoreFailure === "deny") return [-1, `every request is refused ${of}`]
        if (onStoreFailure === "allow") return [Number.POSITIVE_INFINITY, `every request is admitted ${of}`]
        const share = ceilingOf(this.#share(ruleCheck).policy)
        return [share, `each process admits up to ${share} of ${ceilingOf(policy)} ${of}`]
      })
      .sort(([one], [other]) => one - other)
      .map(([, text]) => text)
    if (rules.length === 0) return "no request is refused"
    const more = rules.length - MOST_DESCRIBED
    return rules.slice(0, MOST_DESCRIBED).join(", ") + (more > 0 ? `, and ${more} more` : "")
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
    for (const ruleCheck of local) if (releases(ruleCheck.policy)) this.#countHeld(ruleCheck)
    const all = withPenalties(local)
    const result = peeked ? peekResult(all, this.#store.read(all)) : this.#store.take(all)
    const { answer, penalties } = separatePenalties(all, result)
    const { nowMs, checks } = answer
    const isTaken = answer.granted && !peeked
    onAnswer?.(local, answer)
    let counted = 0
    const explained = ruleChecks.map((ruleCheck) => {
      if (!isCounted(ruleCheck)) return explainUncountable(ruleCheck)
      if (!isCountedHere(ruleCheck)) return explainUncounted(ruleCheck, undefined, 0)
      const i = counted++
      const shared = explainCounted(local[i] as RuleCheck, checks[i] as Counted, nowMs, isTaken)
      // Headers contain the rule's limit instead of the share of this process, because the share also depends on the
      // cost.
      const check = { ...shared, limit: ruleCheck.policy.limit, ...(mayBeGranted(ruleCheck) && LATER) }
      return underPenalty(check, ruleCheck, penalties[i], nowMs)
    })
    if (!isTaken || local.length === 0) return new DecisionRecord(explained, true, undefined)
    return decisionWith(explained, true, { by: this.#by, store: this.#store, ruleChecks: local, answer })
  }

  /**
   * Sets the counter of permits to those that this process holds, so that permits from before the outage count, and
   * released permits do not.
   */
  #countHeld({ policy, partition }: CounterKey): void {
    const key = { policy, partition }
    this.#store.reset([key])
    const held = this.#by.ledger?.heldIn(key) ?? 0
    if (held > 0) this.#store.refund([{ ...key, units: -held, after: UNCOUNTED }])
  }
}

/** The refusal of a request that fits only into units that the store may have granted. */
const LATER = { refusal: "store-failure", retryAfterMs: RETRY_WHEN_CLOSED_MS } as const

/** True if the request does not fit into the limit, but may fit together with the units that are granted in its period. */
function mayBeGranted({ policy, cost, leastCost = cost }: RuleCheck): boolean {
  return policy.periods !== undefined && leastCost > ceilingOf(policy)
}

function isCountedHere(ruleCheck: RuleCheck): boolean {
  return isCounted(ruleCheck) && ruleCheck.onStoreFailure === "local"
}

/**
 * Returns the share of a policy that one of several instances grants on its own, for a request that costs at least
 * `cost`. The share always has room for this one request if the whole limit, including the units admitted above it,
 * has room. Otherwise a client within the limit might be refused forever because its requests reach the wrong
 * instance.
 *
 * A bucket refills at the instance's share of the rate, whatever a request costs, so expensive requests wait longer.
 */
function shareOf(policy: Policy, cost: number, instances: number): Policy {
  const divided = (units: number): number => Math.floor(units / instances)
  const whole = capacityOf(policy)
  const capacity = Math.min(whole, Math.max(1, divided(whole), cost))
  const { limit, extra } = policy
  const sized = readsMember(policy.algorithm, "burst")
    ? { limit: Math.min(limit, Math.max(1, divided(limit))), burst: capacity }
    : { limit: capacity }
  if (extra === undefined) return { ...policy, ...sized }
  return { ...policy, ...sized, extra: Math.max(divided(extra), Math.min(extra, cost - capacity)) }
}
