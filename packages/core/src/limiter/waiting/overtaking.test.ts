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

describe("a request with a higher priority", () => {
  const one = (cost = 1) => ruleCheck("one", 1, cost)

  it("goes ahead of waiting requests, and requests of one priority keep their order", async () => {
    const { enter, pass, log } = setUp()
    enter("takes", [one()])
    for (const [name, priority] of Object.entries({ a: 0, low: -1_000, b: 0, c: 5, high: 1_000, d: 5 })) {
      enter(name, [one()], { priority })
    }
    enter("e", [one()])
    await pass(0)
    for (let i = 0; i < 8; i++) await pass(SECOND)
    const order = ["high", "c", "d", "a", "b", "e", "low"]
    expect(log).toEqual(["0 takes", ...order.map((name, i) => `${(i + 1) * SECOND} ${name}`)])
  })

  it("can make a request of a low priority wait forever", async () => {
    const { enter, pass, log } = setUp()
    enter("takes", [one()])
    enter("starves", [one()], { priority: -1 })
    await pass(0)
    for (let i = 1; i <= 20; i++) {
      enter(`${i}`, [one()])
      await pass(SECOND)
    }
    expect(log).toEqual(["0 takes", ...Array.from({ length: 20 }, (_, i) => `${(i + 1) * SECOND} ${i + 1}`)])
  })

  it("gets the remaining units for which a request ahead of it is too expensive", async () => {
    const { enter, pass, log } = setUp()
    enter("takes", [ruleCheck("one", 3, 2)])
    enter("expensive", [ruleCheck("one", 3, 3)])
    enter("waits", [ruleCheck("one", 3)])
    enter("high", [ruleCheck("one", 3)], { priority: 1, maxWaitMs: 0 })
    await pass(0)
    expect(log).toEqual(["0 takes", "0 high"])
    await pass(SECOND)
    await pass(SECOND)
    expect(log.slice(2)).toEqual(["1000 expensive", "2000 waits"])
  })

  it("makes the others sleep as long as its own refusal, and refuses those that cannot wait longer", async () => {
    const { enter, pass, log, calls } = setUp()
    const [x, y] = [ruleCheck("x", 1), ruleCheck("y", 1, 1, { windowMs: 10 * SECOND })]
    enter("takes both", [x, y])
    enter("low", [y], { maxWaitMs: 15 * SECOND })
    enter("high", [x, y], { priority: 1 })
    enter("impatient", [y], { maxWaitMs: 9 * SECOND })
    await pass(0)
    expect([log, calls.takes]).toEqual([["0 takes both", "0 impatient: refused by y"], 3])
    await pass(10 * SECOND)
    expect(log.slice(2)).toEqual(["10000 high", "10000 low: refused by y"])
  })

  it("does not exceed maxWaiting", async () => {
    const { enter, pass, log } = setUp()
    enter("takes", [one()])
    enter("low", [one()], { priority: -1 })
    enter("high", [one()], { priority: 1, maxWaiting: 1 })
    await pass(0)
    await pass(SECOND)
    expect(log).toEqual(["0 takes", "0 high: refused by one", "1000 low"])
  })

  it("goes first in the queue that it joins from another queue", async () => {
    const { enter, pass, log } = setUp()
    const [x, y] = [ruleCheck("x", 1, 1, { windowMs: 2 * SECOND }), ruleCheck("y", 1, 1, { windowMs: 1_500 })]
    enter("takes x", [x])
    enter("takes y", [y])
    for (const name of ["a", "b"]) enter(name, [y])
    enter("high", [x, y], { priority: 1 })
    await pass(0)
    for (let i = 0; i < 9; i++) await pass(500)
    expect(log).toEqual(["0 takes x", "0 takes y", "1500 a", "3000 high", "4500 b"])
  })

  it("is served after a grant that was pending when it arrived", async () => {
    const { enter, answer, pass, pending, log } = setUp(() => true)
    enter("low", [one()])
    enter("high", [one()], { priority: 1 })
    for (const index of [1, 0]) await answer(index)
    expect(log).toEqual(["0 low"])
    await pass(SECOND)
    while (pending.length > 0) await answer()
    expect(log.slice(1)).toEqual(["1000 high"])
  })
})
