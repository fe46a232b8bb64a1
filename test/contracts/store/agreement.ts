import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { type ManualClock, manualClock } from "../../../packages/core/src/clock.ts"
import type { Check, Store } from "../../../packages/core/src/stores/store.ts"
import { type Trace, traces } from "../traces.ts"
import { check, FIRST_HIT, FIXED, HOUR, HOURLY, MINUTE, SLIDING } from "./asking.ts"
import { StoreModel } from "./model.ts"

/** That a store answers any trace as the naive reference does. */
export function agreement(create: (clock: ManualClock) => Store | Promise<Store>): void {
  describe("any trace", () => {
    it("agrees with the naive reference, to every count of every answer", async () => {
      await fc.assert(
        fc.asyncProperty(fc.array(operations(), { minLength: 1, maxLength: 40 }), async (story) => {
          const clock = manualClock(Date.UTC(2024, 0, 1) + 12_345)
          const store = await create(clock)
          try {
            await agree(store, clock, story)
          } finally {
            await store.close()
          }
        }),
        { seed: 6_001, numRuns: 300 },
      )
    })

    it("of a single client agrees with the naive reference, around every boundary", async () => {
      await fc.assert(
        fc.asyncProperty(traces({ windowsMs: [MINUTE, HOUR] }), async ({ policy, startMs, steps }: Trace) => {
          const clock = manualClock(startMs)
          const store = await create(clock)
          try {
            await agree(
              store,
              clock,
              steps.map(({ afterMs, cost }) => ({
                kind: "take",
                afterMs,
                requests: [[check(policy, cost)]],
              })),
            )
          } finally {
            await store.close()
          }
        }),
        { seed: 6_002, numRuns: 300 },
      )
    })
  })
}

type Requests = readonly (readonly Check[])[]

/** What is done with a store and with its model, some time after the step before. */
type Operation =
  | { readonly kind: "take"; readonly afterMs: number; readonly requests: Requests }
  | { readonly kind: "peek"; readonly afterMs: number; readonly requests: Requests }
  | { readonly kind: "giveBack"; readonly afterMs: number; readonly nth: number; readonly units: number }
  | { readonly kind: "reset"; readonly afterMs: number; readonly key: Check }

function operations(): fc.Arbitrary<Operation> {
  const policies = [SLIDING, FIXED, FIRST_HIT, HOURLY].flatMap((policy) => [policy, { ...policy, limit: 6 }])
  const checks = fc.record({
    policy: fc.constantFrom(...policies),
    partition: fc.constantFrom("alice", "bob", ""),
    cost: fc.oneof(fc.nat(4), fc.nat(16)),
    shadow: fc.oneof(
      { weight: 4, arbitrary: fc.constant(false) },
      { weight: 1, arbitrary: fc.constant(true) },
    ),
  })
  const requests = fc.array(fc.array(checks, { minLength: 1, maxLength: 4 }), { minLength: 1, maxLength: 3 })
  const afterMs = fc.oneof(fc.constantFrom(0, 0, 0, 1, MINUTE, HOUR), fc.nat(MINUTE), fc.nat(3 * MINUTE))
  return fc.oneof(
    { weight: 6, arbitrary: fc.record({ kind: fc.constant("take" as const), afterMs, requests }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant("peek" as const), afterMs, requests }) },
    {
      weight: 2,
      arbitrary: fc.record({
        kind: fc.constant("giveBack" as const),
        afterMs,
        nth: fc.nat(1_000),
        units: fc.nat(6),
      }),
    },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant("reset" as const), afterMs, key: checks }) },
  )
}

/** Does the same with the store and with the model, and compares every answer. */
async function agree(store: Store, clock: ManualClock, story: readonly Operation[]): Promise<void> {
  const model = new StoreModel()
  const taken: { check: Check; startMs: number }[] = []
  for (const operation of story) {
    clock.advance(operation.afterMs)
    const nowMs = clock.now()
    if (operation.kind === "take") {
      const answers = await store.take(operation.requests)
      expect(answers).toEqual(model.take(operation.requests, nowMs))
      for (const [at, { checks }] of answers.entries()) {
        for (const [nth, counted] of checks.entries()) {
          const asked = operation.requests[at]?.[nth] as Check
          if (counted.taken > 0) taken.push({ check: asked, startMs: counted.startMs })
        }
      }
    } else if (operation.kind === "peek") {
      expect(await store.peek(operation.requests)).toEqual(model.peek(operation.requests, nowMs))
    } else if (operation.kind === "reset") {
      await store.reset([operation.key])
      model.reset([operation.key])
    } else {
      const { check: asked, startMs } = taken[operation.nth % taken.length] ?? {}
      if (asked === undefined || startMs === undefined) continue
      const refunds = [
        { policy: asked.policy, partition: asked.partition, units: operation.units, takenInMs: startMs },
      ]
      await store.giveBack(refunds)
      model.giveBack(refunds, nowMs)
    }
  }
}
