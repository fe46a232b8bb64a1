import { InvalidRuleError, type Problem } from "@sluice/core"
import type { LoadedRules, RuleSource } from "@sluice/rules"
import { fileFirst } from "../registering/file-first.ts"
import { rulesInMemory } from "../registering/rules-home.ts"
import type { Log } from "./log.ts"
import type { Settings } from "./settings/settings-table.ts"
import type { OpenRules, TableSettings } from "./table.ts"

/**
 * Opens the table or the file that the settings name. Rejects if the file has an invalid rule, unless the settings
 * allow it.
 *
 * In addition to a file, callers may register rules of other services in memory, but only if no other process shares
 * the counters. Otherwise, processes that share counters would apply different rules.
 */
export async function openRules(
  settings: Pick<Settings, "rules" | "redis" | "allowInvalidRules"> & TableSettings,
  env: Readonly<Record<string, string | undefined>>,
  log: Log,
): Promise<OpenRules> {
  if (settings.table !== undefined) {
    // Load this module only when it is needed, because rules in a file do not need the AWS SDK.
    const { openTable } = await import("./table.ts")
    return openTable(settings.table, settings, env)
  }
  const { redis, allowInvalidRules } = settings
  const rules = settings.rules as string
  const { source, registry } = fileFirst(rules, rulesInMemory())
  const unnamed = await source.load(UNNAMED)
  const problems = await problemsOf(source, unnamed)
  if (!allowInvalidRules) requireValid(problems, rules)
  // The book logs the problems of each service that the file names.
  else if (unnamed.problems.length > 0) logLeftOut(unnamed, source.name, log)
  return {
    source,
    registry: redis === undefined ? registry : undefined,
    mustLoadAtOnce: true,
    close: () => source.close?.(),
  }
}

/** Returns all problems in the file. `unnamed` contains the rules for services without their own document. */
async function problemsOf(file: RuleSource, unnamed: LoadedRules): Promise<readonly Problem[]> {
  const problems = [...unnamed.problems]
  for await (const page of file.loadAll?.() ?? [])
    for (const each of page) problems.push(...(await each.read()).problems)
  // Remove duplicates, because problems of a document whose service is unknown are reported for each service.
  return [...new Map(problems.map((problem) => [`${problem.path}: ${problem.message}`, problem])).values()]
}

function requireValid(problems: readonly Problem[], file: string): void {
  if (problems.length === 0) return
  const cause = new InvalidRuleError(problems)
  const advice = "Correct them, or use --allow-invalid-rules to start with only the valid rules."
  throw new Error(`The rules file ${JSON.stringify(file)} has invalid rules. ${advice}\n${cause.message}`, {
    cause,
  })
}

/**
 * Logs invalid rules of the document for services that the file does not name. The book would log the problems only
 * after the first request for such a service.
 */
function logLeftOut({ rules, problems }: LoadedRules, file: string | undefined, log: Log): void {
  const err = new InvalidRuleError(problems)
  const inForce =
    rules.length === 0
      ? "All of their rules are disabled until this is fixed."
      : "These rules are disabled until this is fixed; the valid ones are in force."
  log.error(
    { code: "SLUICE_RULES_REJECTED", err },
    `${file}, services without their own document: ${err.message}\n${inForce}`,
  )
}

/** A name that no service has, which loads the document without a service. */
const UNNAMED = ""
