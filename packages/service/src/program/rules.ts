import type { RuleRegistry, RuleSource } from "@sluice/core"

/** Where rules come from, and where they are registered. */
export interface OpenRules {
  readonly source: RuleSource
  /** Undefined where rules are changed elsewhere. */
  readonly registry: RuleRegistry | undefined
  /** Whether a first load that fails is a mistake that waiting does not mend. */
  readonly mustLoadAtOnce: boolean
  close(): void | Promise<void>
}
