import { describe, expect, it } from "vitest"
import { ruleCheck, SECOND } from "../../decision/testing/rule-checks.ts"
import { setUp } from "./testing/room.ts"

describe("a request that is refused by a result that was computed before a refund", () => {
  it("is checked again if a request behind it was granted as many units, even if the queue was not notified", async () => {
    let isSlow = false
    const { decider, enter, answer, log, calls } = setUp(() => isSlow)
    const other = await decider.take([ruleCheck("one", 3, 3)])
    isSlow = true
    enter("first", [ruleCheck("one", 3)])
    await decider.corrections.refund(other)
    enter("behind", [ruleCheck("one", 3)])
    for (let i = 0; i < 4; i++) await answer()
    expect([log, calls.takes]).toEqual([["0 first", "0 behind"], 5])
  })
})

describe("units that were granted to a later request and not used", () => {
  /**
   * Sets up a request that lacks a unit. When the unit is refunded, the result for two units of the request behind it
   * is pending.
   */
  async function setUpVain() {
    let isSlow = false
    const room = setUp(() => isSlow)
    const { decider, enter, answer, calls } = room
    const other = await decider.take([ruleCheck("one", 3)])
    isSlow = true
    enter("dear", [ruleCheck("one", 3, 3)])
    enter("behind", [ruleCheck("one", 3, 2)])
    await answer()
    await decider.corrections.refund(other)
    room.room.wake([ruleCheck("one", 3)])
    // The result for the request behind the first one is still pending.
    expect(calls.takes).toBe(3)
    return room
  }

  it("are refunded before the first request calls the store again", async () => {
    const { answer, log, calls } = await setUpVain()
    await answer()
    expect([log, calls.takes]).toEqual([[], 4])
    await answer()
    expect(log).toEqual(["0 dear"])
  })

  it("wake the first request if it was checked before that grant and refused after it", async () => {
    const { enter, answer, log } = setUp(() => true)
    const counting = ruleCheck("counting", 9, 1, { countRejected: true })
    enter("dear", [ruleCheck("one", 3, 3), counting])
    enter("behind", [ruleCheck("one", 3)])
    // The first request fits when it is checked, but no longer when its units are to be taken. The request behind it
    // proceeds afterwards.
    await answer(0)
    await answer(1)
    await answer(0)
    expect(log).toEqual([])
    await answer()
    await answer()
    expect(log).toEqual(["0 dear"])
  })

  it("are refunded, even if the first request needs only one of the counters", async () => {
    const { enter, answer, pending, log, calls } = setUp(() => true)
    enter("takes", [ruleCheck("one", 3)])
    enter("dear", [ruleCheck("one", 3, 3)])
    enter("behind", [ruleCheck("one", 3), ruleCheck("two", 3)])
    while (pending.length > 0) await answer()
    expect([log, calls.returns]).toEqual([["0 takes"], 1])
  })

  it("are refunded if the store granted them immediately while an earlier store call was pending", async () => {
    const { enter, answer, pass, log } = setUp(([check]) => check?.cost === 3)
    enter("takes", [ruleCheck("one", 3)])
    enter("dear", [ruleCheck("one", 3, 3)])
    enter("behind", [ruleCheck("one", 3), ruleCheck("two", 3)])
    await pass(0)
    expect(log).toEqual(["0 takes"])
    await answer()
    expect(log).toEqual(["0 takes"])
  })

  it("do not make a request wait if its wait would be too long", async () => {
    const { enter, answer, pending, log } = setUp(() => true)
    enter("takes", [ruleCheck("one", 3)])
    enter("dear", [ruleCheck("one", 3, 3)])
    const onWait = () => expect.unreachable("it waits")
    enter("behind", [ruleCheck("one", 3)], { maxWaitMs: SECOND / 2, onWait })
    while (pending.length > 0) await answer()
    expect(log).toEqual(["0 takes", "0 behind: refused by one"])
  })

  it("make the first request call the store once more", async () => {
    const { enter, answer, pass, log, calls, pending } = setUp(() => true)
    enter("takes", [ruleCheck("one", 3)])
    enter("dear", [ruleCheck("one", 3, 3)])
    enter("behind", [ruleCheck("one", 3, 2)])
    while (pending.length > 0) await answer()
    expect([log, calls.takes, calls.returns]).toEqual([["0 takes"], 4, 1])
    await pass(SECOND)
    await answer()
    expect([log.slice(1), calls.takes]).toEqual([["1000 dear"], 6])
  })
})
