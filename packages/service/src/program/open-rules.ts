import { fileFirst } from "../registering/file-first.ts"
import { rulesInMemory } from "../registering/rules-home.ts"
import type { OpenRules } from "./rules.ts"
import type { Settings } from "./settings.ts"

/** Opens what the settings say: a file, beside which more may be registered in memory, or a table. */
export async function openRules(
  { rules }: Pick<Settings, "rules">,
  env: Readonly<Record<string, string | undefined>>,
): Promise<OpenRules> {
  if (typeof rules !== "string") {
    // Loaded when it is needed: a file needs no AWS SDK.
    const { openTable } = await import("./table.ts")
    return openTable(rules, env)
  }
  const { source, registry } = fileFirst(rules, rulesInMemory())
  return { source, registry, mustLoadAtOnce: true, close: () => source.close?.() }
}
