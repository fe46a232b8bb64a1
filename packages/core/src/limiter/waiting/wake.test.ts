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

describe("a queue of requests that wait for a permit", () => {
  const permit = (cost = 1) =>
    ruleCheck("in flight", 2, cost, { algorithm: "in-flight", windowMs: 60 * SECOND })

  /** Sets up a room whose two permits are taken. `release` gives back one, as another process would. */
  async function setUpFull() {
    const room = setUp()
    const { decider } = room
    const holders = [await decider.take([permit()]), await decider.take([permit()])]
    room.calls.takes = 0
    const release = () => decider.corrections.release(holders.pop() ?? expect.unreachable())
    /** Returns how often the store was called in each of the next steps. */
    const callsIn = async (...steps: number[]) => {
      const calls: number[] = []
      for (const ms of steps) {
        const before = room.calls.takes
        await room.pass(ms)
        calls.push(room.calls.takes - before)
      }
      return calls
    }
    return { ...room, release, callsIn }
  }

  it("calls the store after 5, 10, 20, 40 and 80 ms, then every 100 ms, for its first request", async () => {
    const { enter, callsIn, log, calls } = await setUpFull()
    for (const name of ["first", "second", "third"]) enter(name, [permit()])
    expect(calls.takes).toBe(1)
    expect(await callsIn(4, 1, 9, 1, 19, 1, 39, 1, 79, 1)).toEqual([0, 1, 0, 1, 0, 1, 0, 1, 0, 1])
    expect(await callsIn(99, 1, 99, 1, 99, 1)).toEqual([0, 1, 0, 1, 0, 1])
    expect(log).toEqual([])
  })

  it("finds the permit that another process has released, and begins with short waits for the next request", async () => {
    const { enter, release, callsIn, log } = await setUpFull()
    for (const name of ["first", "second"]) enter(name, [permit()])
    await callsIn(5, 10, 20)
    await release()
    expect(await callsIn(39, 1)).toEqual([0, 2])
    expect(log).toEqual(["75 first"])
    expect(await callsIn(4, 1, 9, 1)).toEqual([0, 1, 0, 1])
  })

  it("wakes when this process releases permits, and gives them to the first requests in line", async () => {
    const { room, enter, release, callsIn, pass, log } = await setUpFull()
    for (const [name, cost] of Object.entries({ a: 2, b: 1 })) enter(name, [permit(cost)])
    await callsIn(5, 10)
    for (const ms of [1, 2]) {
      await pass(ms)
      room.wake(await release())
    }
    await pass(0)
    expect(log).toEqual(["18 a"])
  })

  it("refuses each request when its maximum wait ends, and calls the store once more for the first one", async () => {
    const { enter, pass, callsIn, log } = await setUpFull()
    enter("first", [permit()], { maxWaitMs: 200 })
    enter("short", [permit()], { maxWaitMs: 100 })
    await callsIn(5, 10, 20, 40)
    enter("late", [permit()], { maxWaitMs: 20 })
    expect(await callsIn(19, 1, 1, 4, 1)).toEqual([0, 0, 0, 0, 0])
    expect(log).toEqual(["96 late: refused by in flight", "101 short: refused by in flight"])
    expect(await callsIn(54, 44, 1)).toEqual([1, 0, 1])
    expect(log.slice(2)).toEqual(["200 first: refused by in flight"])
    await pass(200)
    enter("none", [permit()], { maxWaitMs: 0 })
    expect(await callsIn(0, 200)).toEqual([0, 0])
    expect(log.slice(3)).toEqual(["400 none: refused by in flight"])
  })

  it("refuses a request behind too many others with a hint of a second as the wait", async () => {
    const { room, enter } = await setUpFull()
    enter("first", [permit()])
    const refused = room.enter([permit()], { maxWaitMs: 10 * SECOND, maxWaiting: 1, waitsFor: () => true })
    expect(refused).toMatchObject({ allowed: false, refusal: "in-flight", retryAfterMs: SECOND })
  })

  it("admits a request whose permit is released at the end of its maximum wait", async () => {
    const { enter, callsIn, release, log } = await setUpFull()
    enter("first", [permit()], { maxWaitMs: 200 })
    await callsIn(5, 10, 20, 40, 80, 44)
    await release()
    await callsIn(1)
    expect(log).toEqual(["200 first"])
  })

  it("sleeps as long as a rate refuses, and then asks for permits", async () => {
    const { decider, enter, release, callsIn, log } = await setUpFull()
    const rate = ruleCheck("rate", 1)
    await decider.take([rate])
    enter("first", [rate, permit()])
    expect(await callsIn(SECOND - 1, 1, 9, 1)).toEqual([0, 1, 0, 1])
    await release()
    await callsIn(20)
    expect(log).toEqual(["1030 first"])
  })

  it("gives a released permit to the highest priority", async () => {
    const { room, enter, release, pass, log, calls } = await setUpFull()
    enter("low", [permit()])
    enter("high", [permit()], { priority: 1 })
    expect(calls.takes).toBe(2)
    room.wake(await release())
    await pass(0)
    expect(log).toEqual(["0 high"])
    await release()
    await pass(10)
    expect(log.slice(1)).toEqual(["10 low"])
  })
})
