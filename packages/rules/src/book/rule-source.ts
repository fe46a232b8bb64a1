import type { RuleSource } from "../source.ts"

/** Whether a value can be a rule source. */
export function isSource(value: unknown): value is RuleSource {
  return typeof (value as Partial<RuleSource> | null | undefined)?.load === "function"
}
