import { hasMethod } from "../../request/method.ts"
import type { FieldReader, RequestFacts } from "../../request/request.ts"
import { compileMatch } from "../../rules/matching/match.ts"
import type { RuleMatch } from "../../rules/rule.ts"
import type { Mismatch } from "../interface/rule-explanation.ts"

/**
 * Returns each part of a `match` that excludes a request. Compiles the parts one by one, so it is for tools. Together
 * they exclude the same requests as the whole.
 */
export function matchMismatches(
  match: RuleMatch,
  readerOf: (field: string) => FieldReader,
  facts: RequestFacts,
  results: unknown,
  paths: readonly string[],
): readonly Mismatch[] {
  return partsOf(match).flatMap(([member, part, field]): Mismatch[] => {
    const matches = compileMatch(part, readerOf, hasMethod)
    if (matches(facts, results, paths, text(facts.route))) return []
    return [{ member, ...(field !== undefined && textOfField(field, readerOf, facts, results)) }]
  })
}

/** Returns a field, with its text if the request has the field. */
export function textOfField(
  field: string,
  readerOf: (field: string) => FieldReader,
  facts: RequestFacts,
  results: unknown,
): Pick<Mismatch, "field" | "value"> {
  const value = readerOf(field)(facts, results)
  return value === undefined ? { field } : { field, value }
}

type MatchPart = readonly [member: Mismatch["member"], part: RuleMatch, field?: string]

/** Returns the members of a match one by one, and each of its fields by itself. */
function partsOf({ methods, path, fields = {} }: RuleMatch): readonly MatchPart[] {
  const parts: MatchPart[] = []
  if (methods !== undefined) parts.push(["match.methods", { methods }])
  if (path !== undefined) parts.push(["match.path", { path }])
  for (const [field, values] of Object.entries(fields))
    parts.push(["match.fields", { fields: { [field]: values } }, field])
  return parts
}

/** Returns the fact if it is a string, otherwise undefined. A caller of the core might pass any value. */
export function text(fact: unknown): string | undefined {
  return typeof fact === "string" ? fact : undefined
}
