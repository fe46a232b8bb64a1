import { setImmediate as nextTurn } from "node:timers/promises"
import type { RuleSource } from "@sluice/rules"
import type { Rule } from "../../../rules/rule.ts"

/** Creates a network source whose rules a test changes. Limiters apply the new rules when `publish` resolves. */
export function changingRules(first: readonly Rule[]) {
  let rules = first
  const listeners = new Set<() => void>()
  const source: RuleSource = {
    load: async () => ({ rules, problems: [] }),
    watch(changed) {
      listeners.add(changed)
      return () => void listeners.delete(changed)
    },
  }
  const publish = async (next: readonly Rule[]): Promise<void> => {
    rules = next
    for (const changed of listeners) changed()
    await nextTurn()
  }
  return { source, publish }
}
