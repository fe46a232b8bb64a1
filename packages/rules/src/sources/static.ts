import type { Rule } from "@sluice/core"
import { requireRules } from "@sluice/core/rules"
import { type LiveSource, liveRules } from "../book/live-source.ts"
import type { RuleSource } from "../source.ts"

/**
 * Creates a source of rules that never change and are the same for every service. Use it for a rule book or in tests.
 * @throws {@link InvalidRuleError} with every problem.
 */
export function staticRules(rules: readonly Rule[]): LiveSource {
  requireRules(rules, "rules")
  const loaded = { rules: [...rules], problems: [] }
  const source: RuleSource = { load: async () => loaded, loadSync: () => loaded }
  return { ...source, ...liveRules(source) }
}
