import { setImmediate as nextTurn } from "node:timers/promises"
import { describe, expect, it } from "vitest"
import { deciderOver, ruleCheck, SECOND } from "../../decision/testing/rule-checks.ts"
import type { Clock } from "../../ground/clock.ts"
import { manualClock } from "../../ground/manual-clock.ts"
import { memoryStore } from "../../stores/memory/memory-store.ts"
import { setUp } from "./testing/room.ts"
import { WaitingRoom } from "./waiting-room.ts"

describe("a long queue", () => {
  it("is not scanned at each refusal if its requests wait without a limit", async () => {
    const { log, enter, pass } = setUp()
    let looks = 0
    const patience = {
      maxWaitMs: 1_000 * SECOND,
      get maxWaiting() {
        looks++
        return 1_000
      },
      waitsFor: () => true,
    }
    for (let i = 0; i < 300; i++) enter(`${i}`, [ruleCheck("one", 1)], patience)
    await nextTurn()
    for (let i = 0; i < 300; i++) await pass(SECOND)
    expect(log).toEqual(Array.from({ length: 300 }, (_, i) => `${i * SECOND} ${i}`))
    expect(looks).toBeLessThan(300 * 10)
  })

  it("is scanned once to refuse the requests that have too many requests ahead", async () => {
    const { log, enter, answer, pending } = setUp(() => true)
    // All requests call the store at the same time, because no request is known to wait.
    for (let i = 0; i < 4; i++) enter(`${i}`, [ruleCheck("one", 1)], { maxWaiting: 2 })
    enter("patient", [ruleCheck("one", 1)], { maxWaiting: 3 })
    enter("modest", [ruleCheck("one", 1)], { maxWaiting: 3 })
    expect(pending).toHaveLength(6)
    while (pending.length > 0) await answer()
    // Requests 1, 2 and "patient" have to wait, so the other two have too many requests ahead of them.
    expect(log).toEqual(["0 0", "0 3: refused by one", "0 modest: refused by one"])
  })
})

describe("many requests behind a request that waits for one of its two counters", () => {
  it("call the store one by one, even though the first request was alone in both queues", async () => {
    const { log, enter, pass, calls } = setUp()
    const both = [ruleCheck("one", 1), ruleCheck("two", 1_000)]
    enter("takes it", [ruleCheck("one", 1)])
    enter("first", both)
    for (let i = 0; i < 500; i++) enter(`${i}`, both)
    await nextTurn()
    const before = calls.takes
    await pass(SECOND)
    expect(log).toEqual(["0 takes it", "1000 first"])
    expect(calls.takes - before).toBeLessThan(5)
  })
})

describe("units that are refunded while a store call for more units is pending", () => {
  it("wake a sleeping request if another rule refuses the request ahead of it", async () => {
    const { log, enter, answer, pass, decider, room } = setUp((checks) => checks.length === 2)
    const hourly = ruleCheck("hourly", 1, 1, { windowMs: 3_600 * SECOND })
    enter("takes the second", [ruleCheck("second", 1)])
    enter("takes the next second", [ruleCheck("second", 1)])
    enter("early", [hourly, ruleCheck("second", 1)])
    await nextTurn()
    const taken = await decider.take([hourly])
    enter("late", [hourly])
    await pass(SECOND - 1)
    await decider.corrections.refund(taken)
    await pass(1)
    room.wake([hourly])
    await answer()
    expect(log).toEqual(["0 takes the second", "1000 takes the next second", "1000 late"])
  })
})

describe("a request that had to wait in another queue", () => {
  it("is served before a later request, even if the later request called the store in between", async () => {
    const { log, enter, answer, pass } = setUp(() => true)
    const [x, y] = [ruleCheck("x", 3), ruleCheck("y", 2)]
    enter("takes x", [x])
    enter("takes y", [y, { ...ruleCheck("z", 9) }])
    enter("takes y too", [y])
    for (let i = 0; i < 3; i++) await answer()
    enter("first", [y])
    await answer()
    enter("second", [x, y], { maxWaitMs: 1_500 })
    await pass(999)
    enter("takes x again", [ruleCheck("x", 3, 2)])
    await answer()
    await pass(1)
    // In the new second all units are available again, and "first" calls the store.
    enter("takes all but one of x", [ruleCheck("x", 3, 2)])
    enter("expensive", [ruleCheck("x", 3, 3)])
    await answer(1)
    await answer()
    expect(log.slice(3)).toEqual(["999 takes x again", "1000 takes all but one of x", "1000 first"])
    // "second" is now in the line of x behind the expensive request. It may call the store while that request is not
    // refused.
    await answer()
    await answer()
    await answer()
    expect(log.slice(6)).toEqual(["1000 second"])
  })

  it("does not make the requests behind it block others when it goes ahead of a sleeping request", async () => {
    const { log, enter, answer, pass } = setUp(([first]) => first?.policy.name === "x")
    const hour = { windowMs: 3_600_000 }
    const [x, y] = [ruleCheck("x", 3, 1, hour), ruleCheck("y", 1)]
    enter("takes x", [x])
    await answer()
    enter("takes y", [y])
    enter("early", [x, y])
    enter("late and expensive", [ruleCheck("x", 3, 3, hour)])
    // The first request has to wait for y. The second was refused behind it, calls the store again and is refused
    // again.
    for (let i = 0; i < 3; i++) await answer()
    expect(log).toEqual(["0 takes x", "0 takes y"])
    await pass(SECOND)
    // Other requests arrive while the store call of "early" is pending.
    enter("behind", [x, ruleCheck("w", 1)])
    enter("elsewhere", [ruleCheck("w", 1)])
    await nextTurn()
    // No request ahead of it needs the same counter.
    expect(log.slice(2)).toEqual(["1000 elsewhere"])
    await answer()
    expect(log.slice(3)).toEqual(["1000 early"])
  })
})

describe("the turn that a leaky bucket gave to a request that leaves", () => {
  const leaky = () => ruleCheck("leaky", 10, 1, { algorithm: "leaky-bucket", burst: 5 })
  const setUpHeld = async () => {
    const slow = { is: false }
    const room = setUp(() => slow.is)
    const leaving = new AbortController()
    room.enter("a", [leaky()])
    room.enter("b", [leaky()], { signal: leaving.signal })
    await nextTurn()
    slow.is = true
    return { ...room, slow, leaving }
  }

  it("stays taken while a request behind the leaving one is being given a later turn", async () => {
    const { enter, answer, pass, log, calls, slow, leaving } = await setUpHeld()
    enter("c", [leaky()])
    leaving.abort(new Error("gone"))
    await nextTurn()
    expect([log, calls.returns]).toEqual([["0 a", "0 b: gone"], 0])
    await answer()
    slow.is = false
    enter("d", [leaky()])
    for (let i = 0; i < 4; i++) await pass(100)
    expect([log.slice(2), calls.returns]).toEqual([["200 c", "300 d"], 0])
  })

  it("is not given twice if two pending requests leave and others arrive at that moment", async () => {
    const { enter, answer, pass, log, calls, slow, leaving } = await setUpHeld()
    enter("c", [leaky()], { signal: leaving.signal })
    enter("d", [leaky()], { signal: leaving.signal })
    await answer(1)
    leaving.abort(new Error("gone"))
    slow.is = false
    enter("e", [leaky()])
    // The turn of c becomes known only now, and e has a later turn.
    await answer()
    expect(calls.returns).toBe(0)
    enter("f", [leaky()])
    for (let i = 0; i < 6; i++) await pass(100)
    expect(log.slice(4)).toEqual(["400 e", "500 f"])
  })

  it("is not given twice if one request is refused for its delay while another is pending", async () => {
    const { enter, answer, pass, log, calls, slow } = await setUpHeld()
    enter("impatient", [leaky()], { maxWaitMs: 150 })
    enter("c", [leaky()])
    await answer()
    expect([log, calls.returns]).toEqual([["0 a", "0 impatient: refused by leaky"], 0])
    await answer()
    slow.is = false
    enter("d", [leaky()])
    for (let i = 0; i < 5; i++) await pass(100)
    expect(log.slice(2)).toEqual(["100 b", "300 c", "400 d"])
  })

  it("stays taken while a request that called the store later has a later turn but a shorter wait", async () => {
    const { enter, answer, pass, calls } = await setUpHeld()
    const gone = new AbortController()
    enter("c", [leaky()], { signal: gone.signal })
    await pass(150)
    enter("d", [leaky()])
    gone.abort(new Error("gone"))
    // c must wait for 200 ms. d comes 150 ms later and must wait for 150 ms.
    await answer(1)
    await answer(0)
    expect(calls.returns).toBe(0)
  })

  it("stays taken while a request that arrived earlier, but waited for another rule, has a later turn", async () => {
    const { enter, answer, pass, log, calls, slow } = await setUpHeld()
    const gone = new AbortController()
    slow.is = false
    enter("takes y", [ruleCheck("y", 1)])
    enter("early", [ruleCheck("y", 1), leaky()])
    await pass(990)
    slow.is = true
    enter("late", [leaky()], { signal: gone.signal })
    await pass(10)
    gone.abort(new Error("gone"))
    // The early request gets the turn after the late request, but its result arrives first.
    await answer(1)
    await answer(0)
    slow.is = false
    enter("next", [leaky()])
    for (let i = 0; i < 40; i++) await pass(10)
    expect(log.slice(3)).toEqual(["1000 late: gone", "1090 early", "1190 next"])
    expect(calls.returns).toBe(0)
  })
})

describe("a request that calls the store behind one with a pending result", () => {
  it("is refused if its maximum wait has ended by the time its result arrives", async () => {
    const { enter, answer, pass, log } = setUp((checks) => checks[0]?.cost === 2)
    enter("all", [ruleCheck("one", 3, 3)])
    for (const name of ["one", "two"]) enter(name, [ruleCheck("one", 3)])
    enter("a", [ruleCheck("one", 3, 2)])
    enter("b", [ruleCheck("one", 3, 2)], { maxWaitMs: 1_200 })
    await nextTurn()
    await pass(SECOND)
    await pass(201)
    expect(log.slice(1)).toEqual(["1000 one", "1000 two"])
    await answer(1)
    await answer()
    expect(log.slice(3)).toEqual(["1201 b: refused by one"])
  })

  it("does not wait for a bucket that already delays maxWaiting requests", async () => {
    const { enter, answer, log, pending } = setUp(() => true)
    const leaky = ruleCheck("leaky", 10, 1, { algorithm: "leaky-bucket", burst: 2 })
    for (const name of ["goes on", "is held", "refused"]) enter(name, [leaky], { maxWaiting: 1 })
    while (pending.length > 0) await answer()
    expect(log).toEqual(["0 goes on", "0 refused: refused by leaky"])
  })

  it("does not wait if maxWaiting requests ahead are delayed or waiting", async () => {
    const { enter, answer, log, pending } = setUp(() => true)
    const leaky = ruleCheck("leaky", 10, 1, { algorithm: "leaky-bucket", burst: 2 })
    for (const name of ["goes on", "is held", "waits"]) enter(name, [leaky])
    enter("refused", [leaky], { maxWaiting: 2 })
    enter("waits, too", [leaky], { maxWaiting: 3 })
    while (pending.length > 0) await answer()
    expect(log).toEqual(["0 goes on", "0 refused: refused by leaky"])
  })
})

it("a request that gives up while its refusal is being counted leaves the queue once", async () => {
  const { decider, enter, answer, pass, log } = setUp((checks, isPeek) => !isPeek && checks.length > 1)
  const hard = ruleCheck("hard", 1, 1, { countRejected: true, windowMs: 3_600_000 })
  const leaving = new AbortController()
  let over = 0
  await decider.take([hard])
  for (const name of ["takes", "waits"]) enter(name, [ruleCheck("one", 1)])
  enter("refused", [hard, ruleCheck("one", 1)], {
    signal: leaving.signal,
    waitsFor: ({ policy }) => policy.name === "one",
    onWait: () => () => void over++,
  })
  enter("waits too", [ruleCheck("one", 1)])
  leaving.abort(new Error("gone"))
  await answer()
  for (let i = 0; i < 2; i++) await pass(SECOND)
  expect(log).toEqual(["0 takes", "0 refused: gone", "1000 waits", "2000 waits too"])
  expect(over).toBe(1)
})

it("a request that would be admitted by the time its refusal is counted takes nothing", async () => {
  const { decider, enter, answer, pass, log, calls } = setUp(
    (checks, isPeek) => isPeek && checks.length === 1,
  )
  const hard = ruleCheck("hard", 1, 1, { countRejected: true, windowMs: 500 })
  await decider.take([hard])
  enter("takes", [ruleCheck("one", 3)])
  enter("expensive", [ruleCheck("one", 3, 3)])
  enter("refused", [hard, ruleCheck("one", 3)], { waitsFor: ({ policy }) => policy.name === "one" })
  await nextTurn()
  await pass(600)
  await answer()
  expect([log, calls.returns]).toEqual([["0 takes", "600 refused: refused by hard"], 1])
})

it("no timer is left, whether requests were woken, refused as late or admitted", async () => {
  const inner = manualClock()
  let waits = 0
  const clock: Clock = {
    now: () => inner.now(),
    async wait(ms, signal) {
      waits++
      await inner.wait(ms, signal).finally(() => waits--)
    },
  }
  const room = new WaitingRoom(deciderOver(memoryStore({ clock: inner }), clock), clock)
  const patience = { maxWaitMs: 60_000, maxWaiting: 9, waitsFor: () => true }
  const entered = [0, 1, 2].map(() => room.enter([ruleCheck("one", 1)], patience))
  expect(waits).toBe(1)
  for (const each of entered.slice(1)) {
    inner.advance(SECOND)
    await each
    await nextTurn()
  }
  expect(waits).toBe(0)
})

it("a request with a superseded grant is notified that it waits, and its maximum wait applies", async () => {
  const { enter, answer, pass, log } = setUp(() => true)
  const told: string[] = []
  const patience = (name: string) => ({
    maxWaitMs: 1_500,
    onWait(leave: (reason: unknown) => void) {
      told.push(name)
      if (name === "gone") leave(new Error("hung up"))
      return () => void told.push(`${name} is over`)
    },
  })
  enter("a", [ruleCheck("one", 5, 2)])
  enter("expensive", [ruleCheck("one", 5, 4)])
  enter("impatient", [ruleCheck("one", 5)], patience("impatient"))
  enter("gone", [ruleCheck("one", 5)], patience("gone"))
  await answer(3)
  await answer(2)
  await answer(0)
  expect(told).toEqual([])
  await answer(0)
  expect(log).toEqual(["0 a", "0 gone: hung up"])
  await pass(SECOND)
  // The store call of the expensive request is repeated, and its result is not available in time.
  await pass(500)
  expect(log.slice(2)).toEqual([])
  await pass(1)
  expect(log.slice(2)).toEqual(["1501 impatient: refused by one"])
  expect(told).toEqual(["impatient", "gone", "gone is over", "impatient is over"])
})

it("a wait is a whole number of milliseconds, so that no timer fires early", async () => {
  const waits: number[] = []
  const inner = manualClock()
  const clock: Clock = {
    now: () => inner.now() + 0.3,
    wait(ms, signal) {
      waits.push(ms)
      return inner.wait(ms, signal)
    },
  }
  const decider = deciderOver(memoryStore({ clock: inner }), clock)
  const room = new WaitingRoom(decider, clock)
  const patience = { maxWaitMs: 5_000.5, maxWaiting: 9, waitsFor: () => true }
  const entered = [0, 1, 2].map(() => room.enter([ruleCheck("one", 1)], patience))
  inner.advance(SECOND)
  await entered[1]
  inner.advance(SECOND)
  await entered[2]
  expect(waits.length).toBeGreaterThan(1)
  expect(waits.every(Number.isInteger)).toBe(true)
})
