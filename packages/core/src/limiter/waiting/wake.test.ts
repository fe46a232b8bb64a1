import { describe, expect, it } from "vitest"
import { ruleCheck, SECOND } from "../../decision/testing/rule-checks.ts"
import { setUp } from "./testing/room.ts"

describe("two sleeping requests in one queue, of which the earlier one has returned from another queue", () => {
  /**
   * Sets up two requests. "early" waits a second for its own counter. Then both requests wait for a shared counter
   * that is full for ten seconds.
   */
  async function setUpTwo(early: number, late: number) {
    const room = setUp()
    const { decider, enter, pass } = room
    const all = (cost: number) => ruleCheck("all", 4, cost, { windowMs: 10 * SECOND })
    const own = ruleCheck("own", 1)
    await decider.take([own])
    enter("early", [own, all(early)])
    const other = await decider.take([all(4)])
    enter("late", [all(late)])
    await pass(SECOND)
    return { ...room, all, other }
  }

  it("are both admitted when units for both are refunded at the same time", async () => {
    const { decider, room, pass, log, all, other } = await setUpTwo(1, 2)
    room.wake(await decider.corrections.refund(other))
    await pass(0)
    expect(log).toEqual(["1000 early", "1000 late"])
    expect((await decider.peek([all(1)])).remaining).toBe(1)
  })

  it("are admitted in order when there are units for one of them", async () => {
    const { decider, room, pass, log, other } = await setUpTwo(3, 2)
    room.wake(await decider.corrections.refund(other))
    await pass(0)
    expect(log).toEqual(["1000 early"])
    await pass(9 * SECOND)
    expect(log.slice(1)).toEqual(["10000 late"])
  })
})

it("two queues that wake together are served in the order in which their first requests arrived", async () => {
  const { decider, room, enter, pass, log } = setUp()
  const [x, y, z] = [ruleCheck("x", 1), ruleCheck("y", 1), ruleCheck("z", 1)]
  const taken = [await decider.take([x]), await decider.take([y]), await decider.take([z])]
  enter("first", [x])
  enter("second", [y])
  enter("third", [z])
  for (const decision of taken) await decider.corrections.refund(decision)
  room.wake([y, x, z])
  await pass(0)
  expect(log).toEqual(["0 first", "0 second", "0 third"])
})

it("a queue that wakes after the end of a request's maximum wait still gives the request its turn", async () => {
  const { enter, pass, log } = setUp()
  enter("takes", [ruleCheck("one", 2, 2)])
  enter("first", [ruleCheck("one", 2)])
  enter("behind", [ruleCheck("one", 2)], { maxWaitMs: SECOND + 200 })
  await pass(0)
  await pass(SECOND + 500)
  expect(log).toEqual(["0 takes", "1500 first", "1500 behind"])
})
