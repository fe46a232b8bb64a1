import { setImmediate as nextTurn } from "node:timers/promises"
import { describe, expect, it } from "vitest"
import type { RuleCheck } from "../../decision/rule-check.ts"
import { ruleCheck, SECOND } from "../../decision/testing/rule-checks.ts"
import type { ManualClock } from "../../ground/manual-clock.ts"
import { setUp } from "./testing/room.ts"

const leaky = (name = "leaky", limit = 10): RuleCheck =>
  ruleCheck(name, limit, 1, { algorithm: "leaky-bucket", burst: 5 })

/** Returns the running timers of a clock. */
function timersOf(clock: ManualClock): readonly number[] {
  const running: number[] = []
  const { wait } = clock
  Object.assign(clock, {
    async wait(ms: number, signal: AbortSignal) {
      running.push(ms)
      await wait(ms, signal).finally(() => running.splice(running.indexOf(ms), 1))
    },
  })
  return running
}

describe("a request that a leaky bucket delays", () => {
  it("is delayed for exactly its maximum wait, but no longer", async () => {
    const { enter, pass, log } = setUp()
    enter("a", [leaky()])
    enter("just", [leaky()], { maxWaitMs: 100 })
    enter("too long", [leaky()], { maxWaitMs: 199 })
    await nextTurn()
    await pass(100)
    expect(log).toEqual(["0 a", "0 too long: refused by leaky", "100 just"])
  })

  it("is not delayed by a shadow rule with a longer delay", async () => {
    const { enter, pass, log } = setUp()
    const ruleChecks = [leaky(), { ...leaky("trial", 1), shadow: true }]
    for (const name of ["a", "b"]) enter(name, ruleChecks)
    await nextTurn()
    await pass(100)
    expect(log).toEqual(["0 a", "100 b"])
  })

  it("leaves only once if its signal aborts while it is being read again at its grant", async () => {
    let isSlow = false
    const { room, enter, answer, pass, log, calls } = setUp(() => isSlow)
    const leaving = new AbortController()
    const told: string[] = []
    enter("a", [leaky()])
    isSlow = true
    enter("b", [leaky()], {
      signal: leaving.signal,
      currentChecks() {
        leaving.abort(new Error("gone"))
        return [leaky()]
      },
      onWait() {
        told.push("waits")
        return () => void told.push("is over")
      },
    })
    room.turnToNewRules()
    await answer()
    expect([log, told, calls.returns]).toEqual([["0 a", "0 b: gone"], [], 1])
    isSlow = false
    enter("c", [leaky()])
    await pass(100)
    expect(log.slice(2)).toEqual(["100 c"])
  })
})

describe("a late peek at a rule that the request does not wait for", () => {
  const waitsFor = ({ policy }: RuleCheck) => policy.name === "one"

  /**
   * Puts three requests in line. A hard rule refuses the second request on arrival, but this result is still pending.
   */
  async function setUpLook(limit: number) {
    const room = setUp((_checks, isPeek) => isPeek)
    const hard = ruleCheck("hard", 1, 1, { windowMs: SECOND / 2 })
    await room.decider.take([hard])
    room.enter("all", [ruleCheck("one", limit, limit)])
    room.enter("first", [ruleCheck("one", limit)])
    room.enter("behind", [hard, ruleCheck("one", limit)], { waitsFor })
    room.enter("last", [ruleCheck("one", limit)])
    await nextTurn()
    expect(room.pending).toHaveLength(1)
    await room.pass(SECOND)
    return room
  }

  it("has no effect if the request was admitted in the meantime, and removes no other request from the queue", async () => {
    const { answer, pass, log } = await setUpLook(2)
    expect(log).toEqual(["0 all", "1000 first", "1000 behind"])
    await answer()
    await pass(SECOND)
    expect(log.slice(3)).toEqual(["2000 last"])
  })

  it("has no effect if the store was called in the meantime and the request must wait under all its rules", async () => {
    const { answer, pass, log } = await setUpLook(1)
    expect(log).toEqual(["0 all", "1000 first"])
    await answer()
    await pass(SECOND)
    await pass(SECOND)
    expect(log.slice(2)).toEqual(["2000 behind", "3000 last"])
  })
})

describe("a request that gives up", () => {
  it("leaves the queue once, even if it gives up twice", async () => {
    const { enter, pass, log, room } = setUp()
    let over = 0
    for (const name of ["takes", "first"]) enter(name, [ruleCheck("one", 1)])
    let leaves = (_reason: unknown): void => expect.unreachable("it was not told to wait")
    enter("leaves", [ruleCheck("one", 1)], {
      onWait(leave) {
        leaves = leave
        return () => void over++
      },
    })
    enter("last", [ruleCheck("one", 1)])
    for (const reason of ["gone", "really gone"]) leaves(new Error(reason))
    await nextTurn()
    for (let i = 0; i < 2; i++) await pass(SECOND)
    expect(log).toEqual(["0 takes", "0 leaves: gone", "1000 first", "2000 last"])
    expect([room.size, over]).toEqual([0, 1])
  })

  it("leaves the queue once, even if the store refuses it afterwards under a rule that does not queue", async () => {
    const { decider, enter, answer, log } = setUp((_checks, isPeek) => isPeek)
    const hard = ruleCheck("hard", 1)
    const leaving = new AbortController()
    let over = 0
    await decider.take([hard])
    for (const name of ["takes", "waits"]) enter(name, [ruleCheck("one", 1)])
    enter("leaves", [hard, ruleCheck("one", 1)], {
      signal: leaving.signal,
      waitsFor: ({ policy }) => policy.name === "one",
      onWait: () => () => void over++,
    })
    leaving.abort(new Error("gone"))
    await answer()
    expect([log, over]).toEqual([["0 takes", "0 leaves: gone"], 1])
  })

  it("keeps its units if it gives up after it was admitted", async () => {
    const { enter, pass, log, calls } = setUp()
    let leaves = (_reason: unknown): void => expect.unreachable("it was not told to wait")
    enter("takes", [ruleCheck("one", 1)])
    enter("late", [ruleCheck("one", 1)], {
      onWait(leave) {
        leaves = leave
        return () => undefined
      },
    })
    await pass(0)
    await pass(SECOND)
    leaves(new Error("gone"))
    await pass(0)
    expect([log, calls.returns]).toEqual([["0 takes", "1000 late"], 0])
  })

  it("takes nothing if the end of another request's wait makes it give up just before its turn", async () => {
    const { decider, room, enter, pass, log, calls } = setUp()
    const [x, y] = [ruleCheck("x", 1), ruleCheck("y", 1)]
    const leaving = new AbortController()
    const taken = [await decider.take([x]), await decider.take([y])]
    enter("first", [x], { onWait: () => () => leaving.abort(new Error("gone")) })
    enter("leaves", [y], { signal: leaving.signal })
    for (const decision of taken) await decider.corrections.refund(decision)
    const before = calls.takes
    room.wake([x, y])
    await pass(0)
    expect([log, calls.takes - before]).toEqual([["0 leaves: gone", "0 first"], 1])
  })

  it("causes no unhandled rejection", async () => {
    const { enter, pass, log } = setUp()
    const unhandled: unknown[] = []
    const listen = (reason: unknown): number => unhandled.push(reason)
    process.on("unhandledRejection", listen)
    const leaving = new AbortController()
    enter("takes", [ruleCheck("one", 1)])
    enter("leaves", [ruleCheck("one", 1)], { signal: leaving.signal })
    leaving.abort(new Error("gone"))
    await pass(0)
    process.off("unhandledRejection", listen)
    expect([log, unhandled]).toEqual([["0 takes", "0 leaves: gone"], []])
  })

  it("does not start to wait if the store refuses it afterwards", async () => {
    let isSlow = false
    const { clock, enter, answer, log, room, calls } = setUp(() => isSlow)
    const running = timersOf(clock)
    const leaving = new AbortController()
    enter("all", [ruleCheck("one", 2, 2)])
    isSlow = true
    const onWait = () => expect.unreachable("it has gone")
    enter("leaves", [ruleCheck("one", 2)], { signal: leaving.signal, maxWaitMs: SECOND, onWait })
    leaving.abort(new Error("gone"))
    await answer()
    expect([log, running, room.size, calls.takes]).toEqual([["0 all", "0 leaves: gone"], [], 0, 2])
  })

  it("takes nothing if new rules, which do not queue, are deciding it at that moment", async () => {
    let isSlow = false
    const { decider, room, enter, answer, log, calls } = setUp(() => isSlow)
    const leaving = new AbortController()
    const hard = ruleCheck("hard", 3)
    for (const name of ["takes", "sleeps"]) enter(name, [ruleCheck("one", 1)])
    enter("leaves", [ruleCheck("one", 1)], {
      signal: leaving.signal,
      waitsFor: ({ policy }) => policy.name === "one",
      currentChecks: () => [hard],
    })
    isSlow = true
    room.turnToNewRules()
    leaving.abort(new Error("gone"))
    expect(calls.returns).toBe(0)
    while (log.length < 2) await answer()
    await answer()
    expect([log, calls.returns]).toEqual([["0 takes", "0 leaves: gone"], 1])
    isSlow = false
    expect(await decider.peek([hard])).toMatchObject({ remaining: 3 })
  })
})

describe("the timers of waiting requests", () => {
  it("consist of one for the first request, and none for requests behind it without a maximum wait", async () => {
    const { clock, enter } = setUp()
    const running = timersOf(clock)
    for (let i = 0; i < 5; i++) enter(`${i}`, [ruleCheck("one", 1)])
    await nextTurn()
    expect(running).toEqual([SECOND])
  })

  it("consist of one for the earliest end of a maximum wait while the store is called again", async () => {
    const { clock, enter, answer, pass, pending } = setUp(() => true)
    const running = timersOf(clock)
    for (const name of ["takes", "first"]) enter(name, [ruleCheck("one", 1)])
    while (pending.length > 0) await answer()
    enter("patient", [ruleCheck("one", 1)])
    await pass(SECOND)
    expect([pending.length, running]).toEqual([1, []])
    enter("impatient", [ruleCheck("one", 1)], { maxWaitMs: 500 })
    await pass(0)
    expect(running).toEqual([501])
  })

  it("reject only the request whose maximum wait they measure if the clock cannot wait", async () => {
    const { clock, enter, answer, pass, pending, log } = setUp(() => true)
    const { wait } = clock
    const broken = (ms: number, signal?: AbortSignal) =>
      ms === 501 ? Promise.reject(new Error("no timers")) : wait(ms, signal)
    Object.assign(clock, { wait: broken })
    for (const name of ["takes", "first"]) enter(name, [ruleCheck("one", 1)])
    while (pending.length > 0) await answer()
    enter("patient", [ruleCheck("one", 1)])
    await pass(SECOND)
    enter("impatient", [ruleCheck("one", 1)], { maxWaitMs: 500 })
    await pass(0)
    expect(log).toEqual(["0 takes", "1000 impatient: no timers"])
  })

  it("end when units are refunded before the queue would have woken", async () => {
    const { clock, decider, room, enter, pass, log } = setUp()
    const running = timersOf(clock)
    const taken = await decider.take([ruleCheck("one", 1)])
    enter("waits", [ruleCheck("one", 1)])
    await pass(0)
    expect(running).toEqual([SECOND])
    room.wake(await decider.corrections.refund(taken))
    await pass(0)
    expect([log, running]).toEqual([["0 waits"], []])
  })

  it("end when a request is admitted, even after several refused attempts", async () => {
    const { clock, enter, answer, pass, pending, log } = setUp(() => true)
    const running = timersOf(clock)
    enter("all", [ruleCheck("one", 3, 3)])
    for (const name of ["wakes", "dear", "late"])
      enter(name, [ruleCheck("one", 3, 2)], { maxWaitMs: 60 * SECOND })
    for (let i = 0; i < 3; i++) {
      while (pending.length > 0) await answer()
      await pass(SECOND)
    }
    while (pending.length > 0) await answer()
    expect(log).toEqual(["0 all", "1000 wakes", "2000 dear", "3000 late"])
    expect(running).toEqual([])
  })
})

it("a request is notified once that it waits, even if it first waits behind others and then for units", async () => {
  const { enter, pass, log } = setUp()
  const told: string[] = []
  for (const name of ["takes", "first"]) enter(name, [ruleCheck("one", 1)])
  const onWait = () => {
    told.push("waits")
    return () => void told.push("is over")
  }
  enter("second", [ruleCheck("one", 1)], { onWait })
  await nextTurn()
  for (let i = 0; i < 2; i++) await pass(SECOND)
  expect(log).toEqual(["0 takes", "1000 first", "2000 second"])
  expect(told).toEqual(["waits", "is over"])
})

it("a request that another caller's callback has aborted is not notified that it waits", async () => {
  const { enter, answer, log, pass } = setUp(() => true)
  const told: string[] = []
  const leaving = new AbortController()
  const onWait = (name: string) => () => {
    told.push(name)
    if (name === "one") leaving.abort(new Error("gone"))
    return () => void told.push(`${name} is over`)
  }
  enter("a", [ruleCheck("x", 5, 2)])
  enter("dear", [ruleCheck("x", 5, 4)])
  enter("one", [ruleCheck("x", 5)], { onWait: onWait("one") })
  enter("two", [ruleCheck("x", 5)], { onWait: onWait("two"), signal: leaving.signal, maxWaitMs: 500 })
  await answer(3)
  await answer(2)
  await answer(0)
  await answer(0)
  await nextTurn()
  await pass(600)
  expect([log, told]).toEqual([["0 a", "0 two: gone"], ["one"]])
})
