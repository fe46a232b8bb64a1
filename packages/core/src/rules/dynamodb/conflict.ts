import { show } from "../../ground/show.ts"
import type { RegisteredRules } from "../registry.ts"
import type { Condition } from "./expected-version.ts"

/** What a conflict is told as: what is there, what was expected, and what to do. */
export function conflictMessage(
  tableName: string,
  service: string,
  { seen, next }: Condition,
  found: RegisteredRules | undefined,
): string {
  const what = `Service ${show(service)} in DynamoDB table ${show(tableName)}`
  const wanted =
    seen === undefined ? "no rules yet" : next === 1 ? "none with a version" : `version ${next - 1}`
  const expected = `and was to have ${wanted}. Nothing was changed`
  if (found === undefined) {
    return `${what} has no rules, ${expected}: write without a version to register them anew`
  }
  const isVersioned = found.version > 0
  const there = isVersioned ? `version ${found.version}` : "rules without a version"
  // A version that is none equals no number.
  const isNone = found.problems.some(({ path }) => path.endsWith(" version"))
  const retry = isNone ? '"any"' : found.version
  return `${what} has ${there}, ${expected}: see what is there, and write again with version: ${retry}`
}
