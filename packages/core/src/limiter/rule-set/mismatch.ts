import { hasMethod } from "../../request/method.ts"
import type { FieldReader, RequestFacts } from "../../request/request.ts"
import { compileMatch } from "../../rules/matching/match.ts"
import type { RuleMatch } from "../../rules/rule.ts"
import type { Mismatch } from "../interface/rule-explanation.ts"

/**
 * Returns each only of a `match` that excludes a request. Compiles the members one by one, so it is for tools. Together
 * they exclude the same requests as the whole.
 */
export function matchMismatches(
  match: RuleMatch,
  readerOf: (field: string) => FieldReader,
  facts: RequestFacts,
  results: unknown,
  paths: readonly string[],
): readonly Mismatch[] {
  return membersOf(match).flatMap(([member, only, field]): Mismatch[] => {
    const matches = compileMatch(only, readerOf, hasMethod)
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

type MatchMember = readonly [member: Mismatch["member"], only: RuleMatch, field?: string]

/** Returns the members of a match one by one, and each of its fields by itself. Absent members exclude no request. */
function membersOf({ methods, path, fields = {} }: RuleMatch): readonly MatchMember[] {
  const ofFields = Object.entries(fields).map(
    ([field, values]): MatchMember => ["match.fields", { fields: { [field]: values } }, field],
  )
  return [["match.methods", { methods }], ["match.path", { path }], ...ofFields]
}

/** Returns the fact if it is a string, otherwise undefined. A caller of the core might pass any value. */
export function text(fact: unknown): string | undefined {
  return typeof fact === "string" ? fact : undefined
}
