import { expect, it } from "vitest"
import { DecisionRecord } from "../decision/decision-record.ts"
import { StoreUnavailableError } from "../ground/errors.ts"
import { memoryStore } from "../stores/memory/memory-store.ts"
import { methodsOf } from "../stores/testing/methods-of.ts"
import { createLimiter } from "./create-limiter.ts"

const SETTINGS = {
  limit: 5,
  window: "1 minute",
  field: "service",
  logger: { warn() {}, error() {} },
} as const

// Later rules of a request are decided without the store only if the store has not decided the earlier ones.
it("a decision counts as made without the store only if the store failed, not if its result is degraded", async () => {
  const memory = memoryStore()
  const alone = createLimiter({
    ...{ ...SETTINGS, service: "alone" },
    store: { ...methodsOf(memory), take: (checks) => ({ ...memory.take(checks), isDegraded: true }) },
  })
  const take = (): never => {
    throw new StoreUnavailableError("gone")
  }
  const gone = createLimiter({ ...SETTINGS, service: "gone", store: { ...methodsOf(memory), take } })
  const [written, without] = [await alone.decide({}), await gone.decide({})]
  expect([written, without].map(({ degraded }) => degraded)).toEqual([true, true])
  expect([written, without].map(DecisionRecord.isWithoutStore)).toEqual([false, true])
  for (const [other, isWithout] of [
    [written, false],
    [without, true],
  ] as const) {
    const both = DecisionRecord.joined(written, other, ["limit"])
    expect(DecisionRecord.isWithoutStore(both)).toBe(isWithout)
  }
})
