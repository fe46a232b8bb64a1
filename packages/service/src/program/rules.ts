import type { RuleRegistry, RuleSource } from "@sluice/rules"

/** The source of rules, and the registry for them. */
export interface OpenRules {
  readonly source: RuleSource
  /** Undefined if rules are changed elsewhere. */
  readonly registry: RuleRegistry | undefined
  /** Whether a failure of the first load is a mistake that a retry cannot fix. */
  readonly mustLoadAtOnce: boolean
  close(): void | Promise<void>
}
