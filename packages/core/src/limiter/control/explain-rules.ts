import type { RuleCheck } from "../../decision/rule-check.ts"
import type { PreparedRequest } from "../checking/prepared-request.ts"
import type { RuleExplanation } from "../interface/rule-explanation.ts"

/**
 * Returns an explanation for each rule, in the order of the rules. `ruleChecks` contains at most one check of the
 * request for each rule. If `names` is given, only these rules are explained.
 */
export function explainRules(
  prepared: PreparedRequest<unknown>,
  ruleChecks: readonly RuleCheck[],
  names: readonly string[] | undefined,
): readonly RuleExplanation[] {
  const { ruleSet, facts } = prepared
  const checks = new Map(ruleChecks.map((ruleCheck) => [ruleCheck.policy.name, ruleCheck]))
  const own = ruleSet.rules.flatMap(({ name, shadow, counts }, position): RuleExplanation[] => {
    const ruleCheck = checks.get(name)
    checks.delete(name)
    if (names?.includes(name) === false) return []
    if (ruleCheck !== undefined) return [explanationOf(ruleCheck)]
    const mismatches = ruleSet.mismatches(position, facts, prepared, names === undefined)
    return [{ policy: name, applies: false, shadow, unit: counts, cost: 0, mismatches }]
  })
  // The remaining checks belong to rules of routes, which are not in the limiter's rule set.
  return [...own, ...[...checks.values()].map(explanationOf)]
}

function explanationOf(ruleCheck: RuleCheck): RuleExplanation {
  const { policy, partition, unit, cost, shadow, penalty, refusal } = ruleCheck
  const isCounted = refusal !== "missing-field"
  return {
    policy: policy.name,
    applies: true,
    shadow,
    unit,
    cost,
    ...(isCounted && { counter: { policy, partition } }),
    ...(isCounted && penalty !== undefined && { penalty: { policy: penalty, partition } }),
    ...(refusal !== undefined && { refusal }),
    mismatches: [],
  }
}
