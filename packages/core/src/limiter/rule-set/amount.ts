import { PERMITS, REQUESTS } from "../../ground/policy.ts"
import type { ParsedRule } from "../../rules/rule.ts"
import { warnOfUnit } from "../callbacks/callback.ts"
import type { CallbackResults } from "../callbacks/callback-results.ts"
import type { RuleContext } from "./rule-context.ts"

/**
 * Compiles how many units of the rule's kind a request takes: what the call gives, otherwise what the option `units`
 * gives. Undefined for a rule that counts requests, also requests in progress. A request takes 1 of a unit that neither of them names, and a warning
 * is logged once. With 0, a client whose units are used up would be admitted.
 */
export function compileAmount(
  { counts }: ParsedRule,
  { amountOf, warner }: RuleContext,
): ((results: CallbackResults) => number) | undefined {
  if (counts === REQUESTS || counts === PERMITS) return undefined
  const own = amountOf(counts)
  return (results) => {
    const given = results.amounts?.get(counts)
    if (given !== undefined) return given
    if (own === undefined) warnOfUnit(counts, warner)
    return typeof own === "object" ? (results.resultOf(own) ?? 1) : (own ?? 1)
  }
}
