/** The parts of a limit that name its rule. */
interface NamedRule {
  readonly steps: readonly { readonly key: string; readonly value: string }[]
  readonly limit: { readonly name: string }
}

const LONGEST = 64

/**
 * Returns a function that names a rule after the limit's own name, or else after its keys and values, such as
 * "message_type=marketing+to_number". Characters that are invalid in names become "_". Repeated names get a number.
 */
export function ruleNames(): (named: NamedRule) => string {
  const given = new Set<string>()
  return ({ steps, limit }) => {
    const path = steps.map(({ key, value }) => (value === "" ? key : `${key}=${value}`)).join("+")
    const name = (limit.name || path).replace(/[^\x20!\x23-\x5b\x5d-\x7e]/g, "_")
    for (let number = 1; ; number++) {
      const end = number === 1 ? "" : `-${number}`
      const unique = `${name.slice(0, LONGEST - end.length)}${end}`
      if (given.has(unique)) continue
      given.add(unique)
      return unique
    }
  }
}
