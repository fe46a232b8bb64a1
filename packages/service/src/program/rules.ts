import { fileRules, type RuleRegistry, type RuleSource } from "@sluice/core"
import type { Settings } from "./settings.ts"
import { openTable } from "./table.ts"

/** Where rules come from, and where they are registered. */
export interface OpenRules {
  readonly source: RuleSource
  /** Undefined where rules are changed elsewhere. */
  readonly registry: RuleRegistry | undefined
  /** Whether a first load that fails is a mistake that waiting does not mend. */
  readonly mustLoadAtOnce: boolean
  close(): void | Promise<void>
}

/** Opens what the settings say: a file, or a table. */
export async function openRules(
  { rules }: Pick<Settings, "rules">,
  env: Readonly<Record<string, string | undefined>>,
): Promise<OpenRules> {
  if (typeof rules !== "string") return openTable(rules, env)
  const source = fileRules(rules)
  return { source, registry: undefined, mustLoadAtOnce: true, close: () => source.close?.() }
}
