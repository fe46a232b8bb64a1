import type { RuleCheck } from "../../decision/rule-check.ts"
import type { ParsedRule } from "../../rules/rule.ts"
import type { PreparedRequest } from "../checking/prepared-request.ts"
import type { Mismatch, RuleExplanation } from "../interface/rule-explanation.ts"

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
  const own = ruleSet.rules.flatMap((rule, position): RuleExplanation[] => {
    const ruleCheck = checks.get(rule.name)
    checks.delete(rule.name)
    if (names?.includes(rule.name) === false) return []
    if (ruleCheck !== undefined) return [explanationOf(ruleCheck)]
    return [mismatchOf(rule, ruleSet.mismatches(position, facts, prepared, names === undefined))]
  })
  // The remaining checks belong to rules of routes, which are not in the limiter's rule set.
  return [...own, ...[...checks.values()].map(explanationOf)]
}

/** Explains a rule that does not apply. */
export function mismatchOf(
  { name, shadow, counts }: ParsedRule,
  mismatches: readonly Mismatch[],
): RuleExplanation {
  return { policy: name, applies: false, shadow, unit: counts, cost: 0, mismatches }
}

/** Explains a rule that applies. */
export function explanationOf(ruleCheck: RuleCheck): RuleExplanation {
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
