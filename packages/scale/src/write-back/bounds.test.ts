import { capacityOf, type Policy, peekStore, type StoreResult } from "@sluice/core/stores"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { examples } from "../../../../test/test-length.ts"
import { touchesTwoMs } from "../testing/periods.ts"
import type { Wrap } from "../testing/processes.ts"
import { COUNTINGS, type Counting, type Dangers, EVEN, run, type Story, stories } from "../testing/traffic.ts"
import { writeBackStore } from "./write-back-store.ts"

const RUNS = examples(5, 40)
/** A sweep may run later by a tenth of `settleMs`. */
const LATEST = 1.1

const ALL = [...COUNTINGS, EVEN]
/** Windows that begin with the first request begin separately in each process. */
const EPOCH = COUNTINGS.filter(({ align, algorithm }) => align === "epoch" && algorithm !== "token-bucket")
const QUIET: Dangers = { kills: false, losses: false, limits: false }

/** Generates stories with a `settleMs`, for this number of processes if it is given. */
function settling(
  countings: readonly Omit<Counting, "windowMs">[],
  dangers: Dangers,
  processes?: number,
): fc.Arbitrary<{ readonly story: Story; readonly settleMs: number }> {
  const story = stories(countings, { ...QUIET, ...dangers }).map((one) => ({
    ...one,
    processes: processes ?? Math.max(2, one.processes),
  }))
  return fc.record({ story, settleMs: fc.constantFrom(3, 20, 100, 300) })
}

/** Runs a story on write-back stores. The clocks of processes show the time of the shared store. */
function runSettling(
  { story, settleMs }: { readonly story: Story; readonly settleMs: number },
  instances?: number,
) {
  const wrap: Wrap = (remote, clock) => writeBackStore(remote, { settleMs, instances, clock })
  return run(story, wrap, 0)
}

/**
 * Returns the most units that the algorithm of a policy admits in two windows, if each of its counts is `more` too
 * high.
 */
function worstCase(policy: Policy, more: number): number {
  const { algorithm, limit } = policy
  if (algorithm === "token-bucket") return capacityOf(policy) + limit + more
  return (algorithm === "sliding-window-strict" ? 1 : 2) * (limit + more)
}

describe("a process that is alone", () => {
  it.each(ALL)("$name: grants nothing that the exact algorithm refuses", async (counting) => {
    const dangers = { refunds: counting !== EVEN }
    await fc.assert(
      fc.asyncProperty(settling([counting], dangers, 1), async (settled) => {
        const { witness, quiet } = await runSettling(settled)
        await quiet()
        expect(witness.excess()).toEqual([])
      }),
      { seed: 51, numRuns: RUNS },
    )
  })
})

describe("several processes", () => {
  it.each(ALL)(
    "$name: exceed each count at most by the units that each process grants before it knows the other counts",
    async (counting) => {
      await fc.assert(
        fc.asyncProperty(settling([counting], { refunds: false }), async (settled) => {
          const { story, settleMs } = settled
          const { witness, policy, quiet } = await runSettling(settled)
          await quiet()
          // A settlement takes two round trips. For up to two settlements, a process does not know the units that
          // other processes grant.
          const roundTripsMs = 4 * Math.max(...story.delaysMs)
          const unknownMs = 2 * (LATEST * settleMs + roundTripsMs) + 2
          let unknown = 0
          for (let i = 0; i < story.processes; i++) unknown += witness.most(unknownMs, i)
          const worst = witness.most(touchesTwoMs(policy))
          expect(worst).toBeLessThanOrEqual(worstCase(policy, unknown))
          expect(worst).toBeLessThanOrEqual(story.processes * worstCase(policy, 0))
        }),
        { seed: 52, numRuns: RUNS },
      )
    },
  )

  it.each(ALL)("$name: admit at most 3 L + 2 N with shares", async (counting) => {
    await fc.assert(
      fc.asyncProperty(settling([counting], { refunds: false }), async (settled) => {
        const { processes, steps, burstOf = 1 } = settled.story
        const { witness, policy, quiet } = await runSettling(settled, processes)
        await quiet()
        let cost = 1
        for (const { what } of steps) if (what.kind === "ask") cost = Math.max(cost, what.cost)
        const most = Math.max(1, burstOf) * 3 * policy.limit + 2 * processes * cost
        expect(witness.most(touchesTwoMs(policy))).toBeLessThanOrEqual(most)
      }),
      { seed: 53, numRuns: RUNS },
    )
  })

  it("have charged exactly the granted units, after a silence and after closing", async () => {
    await fc.assert(
      fc.asyncProperty(settling(EPOCH, {}), fc.boolean(), async (settled, isClosed) => {
        const { simulation, shared, witness, running, policy, quiet } = await runSettling(settled)
        if (isClosed) {
          let isDone = false
          void Promise.all(running.map(({ store }) => store.close())).then(() => {
            isDone = true
          })
          while (!isDone) await simulation.pass(1)
        } else {
          await quiet()
          // A settlement may be planned after another settlement that takes 32 ms.
          await simulation.pass(LATEST * settled.settleMs + 40)
          await quiet()
        }
        const answers = await peekStore(shared, [{ policy, partition: "", cost: 0, shadow: false }])
        const { nowMs, checks } = answers as StoreResult
        const { current, previous } = witness.stateAt(nowMs, policy)
        expect(checks[0]?.state).toMatchObject({ current, previous })
      }),
      { seed: 54, numRuns: 2 * RUNS },
    )
  })
})
