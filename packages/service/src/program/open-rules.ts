import { fileRules } from "@sluice/core"
import type { OpenRules } from "./rules.ts"
import type { Settings } from "./settings.ts"
import { openTable } from "./table.ts"

/** Opens what the settings say: a file, or a table. */
export async function openRules(
  { rules }: Pick<Settings, "rules">,
  env: Readonly<Record<string, string | undefined>>,
): Promise<OpenRules> {
  if (typeof rules !== "string") return openTable(rules, env)
  const source = fileRules(rules)
  return { source, registry: undefined, mustLoadAtOnce: true, close: () => source.close?.() }
}
