import { InvalidRuleError, type LoadedRules, type RuleSource } from "@sluice/core"
import { fileFirst } from "../registering/file-first.ts"
import { rulesInMemory } from "../registering/rules-home.ts"
import type { Log } from "./log.ts"
import type { OpenRules } from "./rules.ts"
import type { Settings } from "./settings.ts"

/**
 * Opens what the settings say: a table, or a file. Beside a file, rules of other services may be registered in memory where
 * this process counts by itself; processes that count together would each have other rules.
 */
export async function openRules(
  { rules, redis }: Pick<Settings, "rules" | "redis">,
  env: Readonly<Record<string, string | undefined>>,
  log: Log,
): Promise<OpenRules> {
  if (typeof rules !== "string") {
    // Loaded when it is needed: a file needs no AWS SDK.
    const { openTable } = await import("./table.ts")
    return openTable(rules, env)
  }
  const { source, registry } = fileFirst(rules, rulesInMemory())
  // Before the book reads it, which would log what is wrong as something to be mended while it runs. Here it ends the program.
  const unnamed = await requireRules(source)
  if (unnamed.problems.length > 0) logSetAside(unnamed, source.name, log)
  return {
    source,
    registry: redis === undefined ? registry : undefined,
    mustLoadAtOnce: true,
    close: () => source.close?.(),
  }
}

/**
 * Rejects with InvalidRuleError, which has all that is wrong, where rules are written and none is right: the program
 * would have none to decide by. One good rule of any service is enough: what is wrong beside it is logged. Yields what is for
 * services without a document of their own.
 */
async function requireRules(file: RuleSource): Promise<LoadedRules> {
  const found: LoadedRules[] = []
  for await (const page of file.loadAll?.() ?? []) found.push(...page.map((each) => each.read()))
  const unnamed = await file.load(UNNAMED)
  found.push(unnamed)
  // What is wrong with a document that does not say whose it is is told to each service.
  const problems = new Map(
    found.flatMap((each) => each.problems).map((problem) => [`${problem.path}: ${problem.message}`, problem]),
  )
  if (problems.size > 0 && found.every(({ rules }) => rules.length === 0)) {
    throw new InvalidRuleError([...problems.values()])
  }
  return unnamed
}

/** The book's log has it once somebody asks about such a service: it knows none of them before. */
function logSetAside({ rules, problems }: LoadedRules, file: string | undefined, log: Log): void {
  const err = new InvalidRuleError(problems)
  const inForce =
    rules.length === 0
      ? "None of their rules are in force until this is mended."
      : "These rules are set aside; the others are in force."
  log.error(
    { code: "SLUICE_RULES_REJECTED", err },
    `${file}, services without a document of their own: ${err.message}\n${inForce}`,
  )
}

/** No service has this name, so that what is loaded for it is the document that names none. */
const UNNAMED = ""
