import { InvalidRuleError, type LoadedRules, type RuleSource } from "@sluice/core"
import { fileFirst } from "../registering/file-first.ts"
import { rulesInMemory } from "../registering/rules-home.ts"
import type { OpenRules } from "./rules.ts"
import type { Settings } from "./settings.ts"

/**
 * Opens what the settings say: a table, or a file. Beside a file, rules of other services may be registered in memory where
 * this process counts by itself; processes that count together would each have other rules.
 */
export async function openRules(
  { rules, redis }: Pick<Settings, "rules" | "redis">,
  env: Readonly<Record<string, string | undefined>>,
): Promise<OpenRules> {
  if (typeof rules !== "string") {
    // Loaded when it is needed: a file needs no AWS SDK.
    const { openTable } = await import("./table.ts")
    return openTable(rules, env)
  }
  const { source, registry } = fileFirst(rules, rulesInMemory())
  // Before the book reads it, which would log what is wrong as something to be mended while it runs. Here it ends the program.
  await requireRules(source)
  return {
    source,
    registry: redis === undefined ? registry : undefined,
    mustLoadAtOnce: true,
    close: () => source.close?.(),
  }
}

/**
 * Rejects with InvalidRuleError, which has all that is wrong, where rules are written and none is right: the program
 * would have none to decide by. One good rule of any service is enough: what is wrong beside it is logged.
 */
async function requireRules(file: RuleSource): Promise<void> {
  const found: LoadedRules[] = []
  for await (const page of file.loadAll?.() ?? []) found.push(...page.map((each) => each.read()))
  found.push(await file.load(UNNAMED))
  // What is wrong with a document that does not say whose it is is told to each service.
  const problems = new Map(
    found.flatMap((each) => each.problems).map((problem) => [`${problem.path}: ${problem.message}`, problem]),
  )
  if (problems.size > 0 && found.every(({ rules }) => rules.length === 0)) {
    throw new InvalidRuleError([...problems.values()])
  }
}

/** No service has this name, so that what is loaded for it is the document that names none. */
const UNNAMED = ""
