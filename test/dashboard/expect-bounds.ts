import type { RuleOverview } from "@sluice/dashboard"
import { expect } from "vitest"

/** Expects that a rule's overview bounds the exact number of refusals of each client, and names the three largest. */
export function expectBounds(rule: RuleOverview | undefined, exact: ReadonlyMap<string, number>): void {
  for (const { key, refusals, error } of rule?.refused ?? []) {
    expect(refusals).toBeGreaterThanOrEqual(exact.get(key) ?? 0)
    expect(refusals - error).toBeLessThanOrEqual(exact.get(key) ?? 0)
  }
  const most = [...exact].sort(([, one], [, other]) => other - one).slice(0, 3)
  const listed = rule?.refused.slice(0, 3).map(({ key }) => key)
  expect(listed?.sort()).toEqual(most.map(([key]) => key).sort())
  expect(Math.abs((rule?.refusedClients ?? 0) / exact.size - 1)).toBeLessThan(0.1)
}
