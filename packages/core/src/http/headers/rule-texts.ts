/**
 * Returns a function that has the text of a rule by its name, and makes it when it is first asked for: to make those of a thousand
 * rules takes 20 ms, and most rules match no request of the next second. Undefined for a rule that is not among them.
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
