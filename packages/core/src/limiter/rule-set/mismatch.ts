import { hasMethod } from "../../request/method.ts"
import type { FieldReader, RequestFacts } from "../../request/request.ts"
import { compileMatch } from "../../rules/matching/match.ts"
import type { RuleMatch } from "../../rules/rule.ts"
import type { Mismatch } from "../interface/rule-explanation.ts"

/**
 * Returns each member of a `match` that excludes a request. Together, the members exclude the same requests as the
 * whole `match`. Compiling the members one by one is slow, so this function is only for tools.
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

/** Returns each member of a `match` and each of its fields as a separate `match`. Absent members exclude no request. */
function membersOf({ methods, path, fields = {} }: RuleMatch): readonly MatchMember[] {
  const ofFields = Object.entries(fields).map(
    ([field, values]): MatchMember => ["match.fields", { fields: { [field]: values } }, field],
  )
  return [["match.methods", { methods }], ["match.path", { path }], ...ofFields]
}

/** Returns the fact if it is a string, otherwise undefined, because a caller of the core may pass any value. */
export function text(fact: unknown): string | undefined {
  return typeof fact === "string" ? fact : undefined
}
