import { requireRules } from "../parsing/parse-rule.ts"
import type { Rule } from "../rule.ts"
import type { RuleSource } from "../source.ts"

/**
 * A source of rules that never change, the same for every service: for a rule book, or for tests of what takes a source.
 * @throws {@link InvalidRuleError} with every problem.
 */
export function staticRules(rules: readonly Rule[]): RuleSource {
  requireRules(rules, "rules")
  const loaded = { rules: [...rules], problems: [] }
  return { load: async () => loaded, loadSync: () => loaded }
}
