import type { PolicyCheck } from "../../decision/decision.ts"

/**
 * Returns a function that looks up the text of a rule by its name. The function creates each string on first use,
 * because a thousand strings take 20 ms and most rules match no request in the next second. The function returns
 * undefined for an unknown rule. The text of a rule without `windowMs` depends on the window of the check, so it is not
 * kept.
 */
export function textsOf<Rule extends RuleOfText, Text extends object>(
  rules: readonly Rule[],
  textOf: (rule: Rule & { readonly windowMs: number }) => Text,
): (check: Pick<PolicyCheck, "policy" | "windowMs">) => Text | undefined {
  const byName = new Map(rules.map((rule) => [rule.name, rule]))
  const texts = new Map<string, Text>()
  return (check) => {
    const known = texts.get(check.policy)
    if (known !== undefined) return known
    const rule = byName.get(check.policy)
    if (rule === undefined) return undefined
    const text = textOf({ ...rule, windowMs: rule.windowMs ?? check.windowMs })
    if (rule.windowMs !== undefined) texts.set(rule.name, text)
    return text
  }
}

interface RuleOfText {
  readonly name: string
  readonly windowMs: number | undefined
}
