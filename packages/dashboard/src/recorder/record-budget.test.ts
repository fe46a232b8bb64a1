import { createLimiter } from "@sluice/core"
import { manualClock } from "@sluice/core/testing"
import { describe, expect, it } from "vitest"
import { type BoundedRecords, RecordBudget } from "./record-budget.ts"
import { ActivityRecorder } from "./recorder.ts"
import { RecorderTime } from "./recorder-time.ts"

const START = 1_750_000_200_000 // the beginning of a slot
const SLOT = 300_000

/** Returns recorders with a common budget, and functions that let their limiters refuse clients. */
function open(budget: number) {
  const clock = manualClock(START)
  const time = new RecorderTime(clock, 0)
  const shared = new RecordBudget(budget)
  return {
    clock,
    record(service: string) {
      const limiter = createLimiter({ service, name: "calls", limit: 1, window: "1 minute", clock })
      const recorder = new ActivityRecorder(limiter, time, shared)
      return {
        recorder,
        async refuse(clients: number) {
          for (let i = 0; i < clients; i++)
            await limiter.decide({ remoteAddress: `10.0.0.${i}` }, { cost: 2 })
        },
        counted: () => recorder.sums().slots.refused,
      }
    },
  }
}

describe("a budget of records", () => {
  it("deletes the records of the limiter that has decided nothing for the longest time", async () => {
    const { clock, record } = open(100_000)
    const [idle, busy, last] = [record("idle"), record("busy"), record("last")]
    await idle.refuse(30)
    await busy.refuse(30)
    clock.advance(1_000)
    expect([idle.counted(), busy.counted()]).toEqual([30, 30])
    await idle.refuse(1)
    await last.refuse(30)
    expect([idle.counted(), busy.counted(), last.counted()]).toEqual([31, 0, 30])
    expect(busy.recorder.snapshot()).toMatchObject({ sinceMs: START + 1_000, rules: [], refusals: [] })
    await busy.refuse(2)
    expect(busy.recorder.snapshot()).toMatchObject({
      sinceMs: START + 1_000,
      rules: [{ slots: { refused: [2] }, refused: [{ key: "10.0.0.0" }, { key: "10.0.0.1" }] }],
      refusals: [{ key: "10.0.0.1" }, { key: "10.0.0.0" }],
    })
  })

  it("never takes the records of the only limiter, nor of the one that grows", async () => {
    const { record } = open(1)
    const [first, second] = [record("first"), record("second")]
    await first.refuse(30)
    expect(first.counted()).toBe(30)
    await second.refuse(1)
    expect([first.counted(), second.counted()]).toEqual([0, 1])
  })

  it("no longer counts lists of past slots, and limiters that are not recorded any longer", async () => {
    const { clock, record } = open(200_000)
    const [one, other, last] = [record("one"), record("other"), record("last")]
    // After 200 refusals, only the list of clients grows.
    await one.refuse(250)
    clock.advance(2 * SLOT)
    await one.refuse(1)
    await other.refuse(30)
    expect([one.counted(), other.counted()]).toEqual([251, 30])
    one.recorder.stop()
    clock.advance(2 * SLOT)
    expect(one.counted()).toBe(251)
    await last.refuse(150)
    expect([one.counted(), other.counted(), last.counted()]).toEqual([251, 30, 150])
  })

  it("lets go of a limiter that is no longer in memory", () => {
    const budget = new RecordBudget(100)
    const lost: string[] = []
    const refTo = (name: string | undefined): WeakRef<BoundedRecords> =>
      ({ deref: () => (name === undefined ? name : { forget: () => void lost.push(name) }) }) as never
    for (const name of [undefined, "second", "third"]) budget.grow(refTo(name), 60)
    expect(lost).toEqual(["second"])
  })

  it("counts nothing twice after records were lost", async () => {
    const { record } = open(100_000)
    const limiters = [record("one"), record("two"), record("three")]
    for (let round = 0; round < 20; round++) for (const { refuse } of limiters) await refuse(30)
    expect(limiters.filter(({ counted }) => counted() > 0)).toHaveLength(2)
  })
})
