import type { PolicyCheck } from "../../decision/decision.ts"

/**
 * Returns a function that looks up the text of a rule by its name. The function creates each string on first use,
 * because a thousand strings take 20 ms and most rules match no request in the next second. The function returns
 * undefined for an unknown rule. The text of a rule without `windowMs` depends on the window of the check, so the
 * function keeps only the text of the latest window.
 */
export function textsOf<Rule extends RuleOfText, Text extends object>(
  rules: readonly Rule[],
  textOf: (rule: Rule & { readonly windowMs: number }) => Text,
): (check: Pick<PolicyCheck, "policy" | "windowMs">) => Text | undefined {
  const byName = new Map(rules.map((rule) => [rule.name, rule]))
  const texts = new Map<string, { readonly text: Text; readonly checkedMs: number | undefined }>()
  return (check) => {
    const known = texts.get(check.policy)
    if (known !== undefined && (known.checkedMs === undefined || known.checkedMs === check.windowMs))
      return known.text
    const rule = byName.get(check.policy)
    if (rule === undefined) return undefined
    const text = textOf({ ...rule, windowMs: rule.windowMs ?? check.windowMs })
    texts.set(rule.name, { text, checkedMs: rule.windowMs === undefined ? check.windowMs : undefined })
    return text
  }
}

interface RuleOfText {
  readonly name: string
  /** Undefined if the window depends on the request or on the time. */
  readonly windowMs: number | undefined
}
