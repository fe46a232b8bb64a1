/**
 * Returns a function that looks up the text of a rule by its name. The function creates each string on first use,
 * because a thousand strings take 20 ms and most rules match no request in the next second. The function returns
 * undefined for an unknown rule.
 */
export function textsOf<Rule extends { readonly name: string }, Text extends object>(
  rules: readonly Rule[],
  textOf: (rule: Rule) => Text,
): (name: string) => Text | undefined {
  const byName = new Map(rules.map((rule) => [rule.name, rule]))
  const texts = new Map<string, Text>()
  return (name) => {
    const known = texts.get(name)
    if (known !== undefined) return known
    const rule = byName.get(name)
    if (rule === undefined) return undefined
    const text = textOf(rule)
    texts.set(name, text)
    return text
  }
}
