import { InvalidRuleError, type Rule } from "@sluice/core"
import type { Io } from "../io.ts"
import { documentsOf, readRulesFile } from "../rules-file.ts"

/**
 * Returns the rules of a service in a file. Rejects with InvalidRuleError for a file with problems, and with UsageError if
 * it lacks the service.
 */
export async function serviceRules(service: string, name: string, io: Io): Promise<readonly Rule[]> {
  const file = await readRulesFile(name, {}, io)
  if (file.problems.length > 0) {
    throw new InvalidRuleError(file.problems.map((problem) => ({ ...problem, file: file.name })))
  }
  const rules = documentsOf(file, [service]).flatMap((document) => document.rules)
  return rules.map((each) => ({ field: "service", ...each }))
}
