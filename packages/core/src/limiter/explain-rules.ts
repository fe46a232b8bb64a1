import type { RuleCheck } from "../decision/rule-check.ts"
import type { CounterKey } from "../stores/store.ts"
import type { PreparedRequest } from "./prepared-request.ts"
import type { Mismatch } from "./rule-set/mismatch.ts"

/** What a rule does with a request: the counter that it uses, or why it does not apply. */
export interface RuleExplanation {
  /** Name of the rule. */
  readonly policy: string
  /** True if `decide` checks the request under this rule. */
  readonly applies: boolean
  /** True if the rule never refuses. */
  readonly shadow: boolean
  /** Quota units that the request takes from the counter; 0 if the rule does not apply. */
  readonly cost: number
  /** The counter of the request's client. Absent if the rule does not apply, or refuses for a missing field. */
  readonly counter?: CounterKey
  /** The counter of the client's refusals and blocks. Absent if the rule does not look for a block. */
  readonly penalty?: CounterKey
  /**
   * Why the rule refuses the request without counting: its deny list has the client, a field is missing, or its limit
   * function has failed before it ever returned a limit ("store-failure").
   */
  readonly refusal?: "denied" | "missing-field" | "store-failure"
  /** Why the rule does not apply. Empty if it applies. */
  readonly mismatches: readonly Mismatch[]
}

/**
 * Returns an explanation for each rule, in the order of the rules. `ruleChecks` are the checks of the request, with at
 * most one for each rule. With `names`, only these rules are explained.
 */
export function explainRules(
  prepared: PreparedRequest<unknown>,
  ruleChecks: readonly RuleCheck[],
  names: readonly string[] | undefined,
): readonly RuleExplanation[] {
  const { ruleSet, facts } = prepared
  const checks = new Map(ruleChecks.map((ruleCheck) => [ruleCheck.policy.name, ruleCheck]))
  const own = ruleSet.rules.flatMap(({ name, shadow }, position): RuleExplanation[] => {
    const ruleCheck = checks.get(name)
    checks.delete(name)
    if (names?.includes(name) === false) return []
    if (ruleCheck !== undefined) return [explanationOf(ruleCheck)]
    const mismatches = ruleSet.mismatches(position, facts, prepared, names === undefined)
    return [{ policy: name, applies: false, shadow, cost: 0, mismatches }]
  })
  // Named rules of routes are not in the limiter's rule set.
  return [...own, ...[...checks.values()].map(explanationOf)]
}

function explanationOf(ruleCheck: RuleCheck): RuleExplanation {
  const { policy, partition, cost, shadow, penalty, refusal } = ruleCheck
  const isCounted = refusal !== "missing-field"
  return {
    policy: policy.name,
    applies: true,
    shadow,
    cost,
    ...(isCounted && { counter: { policy, partition } }),
    ...(isCounted && penalty !== undefined && { penalty: { policy: penalty, partition } }),
    ...(refusal !== undefined && { refusal }),
    mismatches: [],
  }
}
