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
  for await (const _page of source.loadAll?.() ?? []);
  return {
    source,
    registry: redis === undefined ? registry : undefined,
    mustLoadAtOnce: true,
    close: () => source.close?.(),
  }
}
