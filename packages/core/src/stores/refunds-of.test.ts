import { expect, it } from "vitest"
import { refundsOf } from "./refunds-of.ts"
import { fixedCheck } from "./testing/checks.ts"

it("refundsOf returns the units of each check that took some, with the state in which they were taken", () => {
  const checks = ["taken", "after", "nothing", "unread"].map((name) => fixedCheck(name, 5))
  const [state, after] = [1, 2].map((current) => ({ startMs: 0, previous: 0, current }))
  const counted = [
    { state, taken: 2 },
    { state, taken: 1, after },
    { state, taken: 0 },
    undefined,
  ] as Parameters<typeof refundsOf>[1]
  const refunds = refundsOf(checks, counted).map(({ policy, units, after: of }) => [policy.name, units, of])
  expect(refunds).toEqual([
    ["taken", 2, state],
    ["after", 1, after],
  ])
})
