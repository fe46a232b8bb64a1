import { InvalidRuleError, type LoadedRules, type Problem, type RuleSource } from "@sluice/core"
import { fileFirst } from "../registering/file-first.ts"
import { rulesInMemory } from "../registering/rules-home.ts"
import type { Log } from "./log.ts"
import type { OpenRules } from "./rules.ts"
import type { Settings } from "./settings.ts"

/**
 * Opens what the settings say: a table, or a file. Beside a file, rules of other services may be registered in memory if
 * this process counts by itself; processes that count together would each have other rules. Rejects if the file has an invalid
 * rule, unless the settings allow it.
 */
export async function openRules(
  { rules, redis, allowInvalidRules }: Pick<Settings, "rules" | "redis" | "allowInvalidRules">,
  env: Readonly<Record<string, string | undefined>>,
  log: Log,
): Promise<OpenRules> {
  if (typeof rules !== "string") {
    // Loaded when it is needed: a file needs no AWS SDK.
    const { openTable } = await import("./table.ts")
    return openTable(rules, env)
  }
  const { source, registry } = fileFirst(rules, rulesInMemory())
  const unnamed = await source.load(UNNAMED)
  const problems = await problemsOf(source, unnamed)
  if (!allowInvalidRules) requireValid(problems, rules)
  // The book logs what is wrong with each service that the file names.
  else if (unnamed.problems.length > 0) logLeftOut(unnamed, source.name, log)
  return {
    source,
    registry: redis === undefined ? registry : undefined,
    mustLoadAtOnce: true,
    close: () => source.close?.(),
  }
}

/** Returns everything that is wrong in the file. `unnamed` is what is for services without a document of their own. */
async function problemsOf(file: RuleSource, unnamed: LoadedRules): Promise<readonly Problem[]> {
  const problems = [...unnamed.problems]
  for await (const page of file.loadAll?.() ?? [])
    for (const each of page) problems.push(...(await each.read()).problems)
  // What is wrong with a document whose service is not known is reported to each service.
  return [...new Map(problems.map((problem) => [`${problem.path}: ${problem.message}`, problem])).values()]
}

function requireValid(problems: readonly Problem[], file: string): void {
  if (problems.length === 0) return
  const cause = new InvalidRuleError(problems)
  const advice = "Correct it, or start by its valid rules with --allow-invalid-rules."
  throw new Error(`The rules file ${JSON.stringify(file)} has invalid rules. ${advice}\n${cause.message}`, {
    cause,
  })
}

/** The book's log has it only when a request for such a service comes: it knows none of them before. */
function logLeftOut({ rules, problems }: LoadedRules, file: string | undefined, log: Log): void {
  const err = new InvalidRuleError(problems)
  const inForce =
    rules.length === 0
      ? "None of their rules are in force."
      : "These rules are left out; the valid ones are in force."
  log.error(
    { code: "SLUICE_RULES_REJECTED", err },
    `${file}, services without a document of their own: ${err.message}\n${inForce}`,
  )
}

/** No service has this name, so that what is loaded for it is the document that names none. */
const UNNAMED = ""
