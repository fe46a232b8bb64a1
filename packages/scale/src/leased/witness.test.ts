import { algorithmOf, type Policy, peekStore, type StoreResult } from "@sluice/core/stores"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { examples } from "../../../../test/test-length.ts"
import { COUNTINGS, EVEN, run, type Story, stories } from "../testing/traffic.ts"
import { leaseMsOf } from "./sizing.ts"

const RUNS = examples(10, 50)

/** Returns the counts of the shared store and the counts of all grants, without units that no longer have an effect. */
async function counts({ simulation, shared, witness, policy }: Awaited<ReturnType<typeof run>>) {
  const answers = await peekStore(shared, [{ policy, partition: "", cost: 0, shadow: false }])
  const { nowMs, checks } = answers as StoreResult
  const exact = witness.stateAt(Math.floor(simulation.nowMs), policy)
  const summary = (state: typeof exact) => [
    state.current,
    state.previous,
    algorithmOf(policy).used(state, policy, nowMs),
  ]
  return { counted: summary((checks[0] as { readonly state: typeof exact }).state), granted: summary(exact) }
}

describe("leases grant nothing that the exact algorithm refuses", () => {
  it.each(COUNTINGS)("$name: in any story", async (counting) => {
    // A bucket refills lazily, so a new limit changes the units that were refilled since its latest request.
    const limits = counting.algorithm !== "token-bucket"
    await fc.assert(
      fc.asyncProperty(stories([counting], { limits }), async (story) => {
        const { witness, quiet } = await run(story)
        await quiet()
        expect(witness.excess()).toEqual([])
      }),
      { seed: 41, numRuns: RUNS },
    )
  })

  /**
   * Returns the units that an evenly refilling bucket may admit above its burst, which are the units that it refills
   * within T.
   */
  const moreOf = (policy: Policy, { leaseMs }: Story): number =>
    Math.ceil((policy.limit * leaseMsOf(policy, leaseMs)) / policy.windowMs)

  it("a bucket that refills evenly: up to the units that it refills within T", async () => {
    await fc.assert(
      fc.asyncProperty(stories([EVEN], { limits: false, refunds: false }), async (story) => {
        const { witness, policy, quiet } = await run(story)
        await quiet()
        expect(witness.excess(moreOf(policy, story))).toEqual([])
      }),
      { seed: 42, numRuns: RUNS },
    )
  })

  it("a bucket that refills evenly, with refunds: up to these units and the refunded units", async () => {
    // A refund subtracts units from the earlier level of the bucket. The refund does not know the other units that
    // were refunded since then.
    await fc.assert(
      fc.asyncProperty(stories([EVEN], { limits: false }), async (story) => {
        const { witness, policy, quiet } = await run(story)
        await quiet()
        expect(witness.excess(moreOf(policy, story) + witness.refundedUnits)).toEqual([])
      }),
      { seed: 45, numRuns: RUNS },
    )
  })
})

describe("leases refund exactly the unused units", () => {
  const windows = COUNTINGS.filter(({ algorithm }) => algorithm !== "token-bucket")
  const safe = fc.oneof(
    { weight: 3, arbitrary: stories(windows, { kills: false, losses: false }) },
    { weight: 1, arbitrary: stories(COUNTINGS, { kills: false, losses: false, limits: false }) },
  )

  it("after T of silence", async () => {
    await fc.assert(
      fc.asyncProperty(safe, async (story) => {
        const world = await run(story)
        const { policy } = world
        await world.quiet()
        // A sweep may run later by a tenth of the longest T.
        await world.simulation.pass(leaseMsOf(policy, story.leaseMs) + 0.1 * story.leaseMs + 1)
        await world.quiet()
        const { counted, granted } = await counts(world)
        expect(counted).toEqual(granted)
        expect(world.running.map(({ store }) => store.status?.leases?.held)).toEqual(
          world.running.map(() => 0),
        )
      }),
      { seed: 43, numRuns: 2 * RUNS },
    )
  })

  it("when the stores are closed", async () => {
    await fc.assert(
      fc.asyncProperty(safe, async (story) => {
        const world = await run(story)
        const closed = world.running.map(({ store }) => store.close())
        await world.quiet()
        await Promise.all(closed)
        const { counted, granted } = await counts(world)
        expect(counted).toEqual(granted)
      }),
      { seed: 44, numRuns: 2 * RUNS },
    )
  })
})
