import { RULE_MEMBERS } from "../../rules/parse-rule.ts"

/** The members of an inline rule that are options of a limiter by the same name. */
export const RULE_OPTIONS: readonly string[] = RULE_MEMBERS.filter(
  (name) => name !== "cost" && name !== "onStoreFailure",
)

/**
 * Whether options say which rules there are: an inline one, be it whole or not, a list, a source, or a limiter that has some. What is
 * there and undefined says so as well: a limit that is lost on the way is no wish for none.
 */
export function hasRuleOption(options: object): boolean {
  return [...RULE_OPTIONS, "rules", "limiter"].some((name) => name in options)
}
