import { setImmediate as nextTurn } from "node:timers/promises"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import type { Policy } from "../../policy.ts"
import { ask, SECOND, setUp } from "./testing/room.ts"

const QUEUE = { maxWaitMs: 2 * SECOND }

describe("who would have to wait for longer than it does", () => {
  it("is refused at once, and who comes behind it waits where it would have", async () => {
    const { log, enter, pass } = setUp()
    for (const name of ["a", "b", "c", "d", "e"]) enter(name, [ask("one", 1)], QUEUE)
    enter("patient", [ask("one", 1)], { maxWaitMs: 3 * SECOND })
    await nextTurn()
    expect(log).toEqual(["0 a", "0 d: refused by one", "0 e: refused by one"])
    for (let i = 0; i < 3; i++) await pass(SECOND)
    expect(log.slice(3)).toEqual(["1000 b", "2000 c", "3000 patient"])
  })

  it("is refused as soon as one ahead of it has been, where all have asked at once", async () => {
    const { log, enter, answer, pass, pending } = setUp(() => true)
    for (const name of ["a", "b", "c", "d", "e"]) enter(name, [ask("one", 1)], QUEUE)
    expect(pending).toHaveLength(5)
    await answer()
    await answer()
    expect(log).toEqual(["0 a", "0 d: refused by one", "0 e: refused by one"])
    while (pending.length > 0) await answer()
    for (let i = 0; i < 2; i++) {
      await pass(SECOND)
      while (pending.length > 0) await answer()
    }
    expect(log.slice(3)).toEqual(["1000 b", "2000 c"])
  })

  it("is told by the units that those ahead of it want at least, and that it wants itself", async () => {
    const { log, enter, pass } = setUp()
    enter("takes all", [ask("one", 4, 4)])
    enter("a", [ask("one", 4, 2)], QUEUE)
    // With the first of them, or with two, it is one window that they fill.
    for (const name of ["b", "c"]) enter(name, [ask("one", 4, 2)], { maxWaitMs: SECOND })
    // From now on it may be that those ahead want less.
    enter("d", [ask("one", 4, 1)], { maxWaitMs: SECOND })
    await nextTurn()
    expect(log).toEqual(["0 takes all", "0 c: refused by one"])
    await pass(SECOND)
    expect(log.slice(2)).toEqual(["1000 a", "1000 b", "1000 d: refused by one"])
  })

  it("is refused, too, where it came while the first was asking once more", async () => {
    const { log, enter, answer, pass, pending, room } = setUp(() => true)
    for (const name of ["a", "b", "c"]) enter(name, [ask("one", 1)])
    while (pending.length > 0) await answer()
    await pass(500)
    // For nothing: there are no units.
    room.wake([ask("one", 1)])
    enter("d", [ask("one", 1)], { maxWaitMs: 1_500 })
    enter("e", [ask("one", 1)], { maxWaitMs: 3_500 })
    expect(pending).toHaveLength(1)
    await answer()
    expect(log).toEqual(["0 a", "500 d: refused by one"])
  })

  it("is never the first, who has been told by the store how long that is", async () => {
    const { log, enter, answer, pass, pending } = setUp(() => true)
    const bucket = { algorithm: "token-bucket", burst: 7 } as const
    enter("takes all", [ask("one", 3, 7, bucket)])
    // They all ask at once. Seven tokens take 2.3 seconds, whatever those behind it want.
    enter("first", [ask("one", 3, 7, bucket)], { maxWaitMs: 2_400 })
    enter("cheap", [ask("one", 3, 1, bucket)], { maxWaitMs: 2_400 })
    while (pending.length > 0) await answer()
    await pass(2_334)
    while (pending.length > 0) await answer()
    expect(log).toEqual(["0 takes all", "2334 first", "2334 cheap: refused by one"])
  })

  it("waits for as long as it likes where more may be admitted than the limit", async () => {
    const { log, enter } = setUp()
    const elastic = { ...ask("one", 1), policyNow: () => ask("one", 1).policy }
    for (const name of ["a", "b", "c", "d", "e"]) enter(name, [elastic], QUEUE)
    await nextTurn()
    expect(log).toEqual(["0 a"])
  })

  it.each<Partial<Policy>>([
    { algorithm: "fixed-window" },
    { algorithm: "sliding-window" },
    { algorithm: "sliding-window", buckets: 4 },
    { algorithm: "sliding-window-strict", buckets: 4 },
    { algorithm: "sliding-log" },
    { algorithm: "token-bucket" },
    { algorithm: "token-bucket", burst: 7 },
  ])("is never who would not have had to: %j", async (policy) => {
    const who = fc.record({ cost: fc.integer({ min: 1, max: 3 }), afterMs: fc.nat(700) })
    const patience = fc.integer({ min: 1, max: 4 * SECOND })
    const limit = fc.integer({ min: 3, max: 6 })
    const play = async (
      limitOf: number,
      all: readonly { cost: number; afterMs: number }[],
      maxWaitMs: number,
    ) => {
      const { log, enter, pass } = setUp()
      for (const [i, { cost, afterMs }] of all.entries()) {
        enter(`${i}`, [ask("one", limitOf, cost, policy)], { maxWaitMs })
        await pass(afterMs)
      }
      for (let i = 0; i < 200; i++) await pass(100)
      return log
    }
    await fc.assert(
      fc.asyncProperty(limit, fc.array(who, { maxLength: 12 }), patience, async (limitOf, all, maxWaitMs) => {
        const [hasty, patient] = [
          await play(limitOf, all, maxWaitMs),
          await play(limitOf, all, 3_600 * SECOND),
        ]
        const first = hasty.find((line) => line.includes("refused"))
        if (first === undefined) return
        const [, name] = /^\d+ (\d+):/.exec(first) as unknown as [string, string]
        const arrivedMs = all.slice(0, Number(name)).reduce((sum, { afterMs }) => sum + afterMs, 0)
        const served = patient.find((line) => line.endsWith(` ${name}`)) as string
        expect(Number.parseInt(served, 10) - arrivedMs).toBeGreaterThan(maxWaitMs)
      }),
      { numRuns: 60 },
    )
  })
})
