import { requireRules } from "../parsing/parse-rule.ts"
import type { Rule } from "../rule.ts"
import type { RuleSource } from "../source.ts"

/**
 * Creates a source of rules that never change and are the same for every service. Use it for a rule book or in tests.
 * @throws {@link InvalidRuleError} with every problem.
 */
export function staticRules(rules: readonly Rule[]): RuleSource {
  requireRules(rules, "rules")
  const loaded = { rules: [...rules], problems: [] }
  return { load: async () => loaded, loadSync: () => loaded }
}
