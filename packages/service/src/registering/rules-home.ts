import type { RuleRegistry, RuleSource } from "@sluice/rules"
import { memoryRegistry } from "./memory-registry.ts"

/** A place for rules: the source that a rule book reads, and the registry that writes them. */
export interface RulesHome {
  /** The source that a rule book reads. */
  readonly source: RuleSource
  /** The registry that writes the rules. */
  readonly registry: RuleRegistry
}

/** Creates a home for rules in the memory of this process. The rules are lost when the process ends. */
export function rulesInMemory(): RulesHome {
  const registry = memoryRegistry()
  return { source: registry, registry }
}
