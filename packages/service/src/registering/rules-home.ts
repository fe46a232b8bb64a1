import type { RuleRegistry, RuleSource } from "@sluice/core"
import { memoryRegistry } from "./memory-registry.ts"

/** Where rules are kept: what a rule book reads them by, and what they are registered with. */
export interface RulesHome {
  /** What a rule book reads. */
  readonly source: RuleSource
  /** What rules are registered with. */
  readonly registry: RuleRegistry
}

/** In the memory of this process, which forgets them when it ends. */
export function rulesInMemory(): RulesHome {
  const registry = memoryRegistry()
  return { source: registry, registry }
}
