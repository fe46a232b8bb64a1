import type { RuleMatch } from "@sluice/core"
import type { Mismatch } from "@sluice/core/adapters"
import type { StorableRule } from "@sluice/rules"

/** Returns a sentence that explains why a rule does not apply to the request. */
export function mismatchText({ member, field = "", value }: Mismatch, rule: StorableRule): string {
  // The cast is safe, because only rules in code contain functions.
  const { methods = [], path, fields = {} } = (rule.match ?? {}) as RuleMatch
  switch (member) {
    case "match.methods":
      return `the method is not ${anyOf(methods)}`
    case "match.path":
      return `the path does not match ${quoted(path ?? "")}`
    case "match.fields": {
      // Ignore the case, because rules may spell a header name in any case.
      const [, values = []] =
        Object.entries(fields).find(([name]) => name.toLowerCase() === field.toLowerCase()) ?? []
      return `${is(field, value)}, not ${anyOf(values)}`
    }
    case "allow":
      return `${is(field, value)}, which is on the allow list`
    case "onMissing":
      return `${is(field, value)}, and the rule skips such requests`
    case "limit":
    case "match.when":
      return "the request is not limited"
    case "preflight":
      return "a CORS preflight is only counted by rules for OPTIONS"
    case "onlyFields":
      return `the request does not have ${field}`
    case "cannotRelease":
      return "nobody would say when the request has ended"
  }
}

function is(field: string, value: string | undefined): string {
  return value === undefined ? `${field} is missing` : `${field} is ${quoted(value)}`
}

/** Maximum number of values to print, because a rule may list thousands. */
const MOST_SHOWN = 5

function anyOf(values: readonly string[]): string {
  const shown = values.slice(0, MOST_SHOWN).map(quoted).join(" or ")
  return values.length > MOST_SHOWN ? `${shown} or ${values.length - MOST_SHOWN} more` : shown
}

function quoted(text: string): string {
  return JSON.stringify(text)
}
