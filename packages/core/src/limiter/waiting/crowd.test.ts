import { describe, expect, it } from "vitest"
import { ruleCheck, SECOND } from "../../decision/testing/rule-checks.ts"
import { setUp } from "./testing/room.ts"

const TEN_SECONDS = { windowMs: 10 * SECOND }

describe("a new request that would wait too long", () => {
  function setUpTwo() {
    const room = setUp()
    const [x, y] = [ruleCheck("x", 1), ruleCheck("y", 1, 1, TEN_SECONDS)]
    for (const each of [x, y])
      for (const name of ["takes", "sleeps"]) room.enter(`${name} ${each.policy.name}`, [each])
    return { ...room, x, y }
  }
  const patience = { maxWaitMs: 500, maxWaiting: 9, waitsFor: () => true }

  it("is refused immediately, without being notified that it waits", () => {
    const { room, x } = setUpTwo()
    const onWait = () => expect.unreachable("it waits")
    expect(room.enter([x], { ...patience, onWait })).toMatchObject({ allowed: false, retryAfterMs: SECOND })
    expect(room.size).toBe(2)
  })

  it("is refused with the longest wait of its counters", () => {
    const { room, x, y } = setUpTwo()
    expect(room.enter([x, y], patience)).toMatchObject({ allowed: false, retryAfterMs: 10 * SECOND })
  })
})

it("a request with maxWaiting requests ahead is refused immediately and not notified that it waits", async () => {
  const { room, enter, answer } = setUp(() => true)
  for (const name of ["takes", "waits"]) enter(name, [ruleCheck("one", 2, 2)])
  for (let i = 0; i < 2; i++) await answer()
  const patience = { maxWaitMs: 2 * SECOND, waitsFor: () => true }
  const onWait = () => expect.unreachable("it waits")
  const refused = room.enter([ruleCheck("one", 2)], { ...patience, maxWaiting: 1, onWait })
  expect(refused).toMatchObject({ allowed: false, retryAfterMs: SECOND })
  void room.enter([ruleCheck("one", 2)], { ...patience, maxWaiting: 2 })
  expect(room.size).toBe(2)
})

describe("a request that returns from another queue, ahead of later requests", () => {
  it("causes the refusal of a later request that now has too many requests ahead", async () => {
    const { enter, pass, log } = setUp()
    const [x, y] = [ruleCheck("x", 1), ruleCheck("y", 1, 1, TEN_SECONDS)]
    for (const name of ["x1", "x2"]) enter(name, [x])
    enter("y1", [y])
    enter("y2", [y], { maxWaiting: 1 })
    // "back" waits for x first, so one more request can wait behind "y2" for now.
    enter("back", [x, y])
    enter("leaves", [y], { maxWaiting: 2 })
    enter("stays", [y], { maxWaiting: 4 })
    await pass(0)
    await pass(SECOND)
    expect(log).toEqual(["0 x1", "0 y1", "1000 x2", "1000 leaves: refused by y"])
  })

  it("causes no refusal of a sleeping request that was the first in the queue", async () => {
    const { decider, room, enter, pass, log } = setUp()
    const [own, all] = [ruleCheck("own", 1), ruleCheck("all", 2, 1, TEN_SECONDS)]
    await decider.take([own])
    enter("early", [own, all])
    const other = await decider.take([{ ...all, cost: 2 }])
    enter("late", [all], { maxWaiting: 1 })
    await pass(SECOND)
    expect(log).toEqual([])
    room.wake(await decider.corrections.refund(other))
    await pass(0)
    expect(log).toEqual(["1000 early", "1000 late"])
  })
})

it("a new request does not scan a long queue, even if the queue is longer than the first request allows", () => {
  const { room, enter } = setUp()
  let looks = 0
  enter("takes", [ruleCheck("one", 1)])
  enter("sleeps", [ruleCheck("one", 1)], { maxWaiting: 1 })
  const patience = {
    get maxWaiting() {
      looks++
      return 1_000
    },
  }
  for (let i = 0; i < 300; i++) enter(`${i}`, [ruleCheck("one", 1)], patience)
  expect(room.size).toBe(301)
  expect(looks).toBeLessThan(300 * 10)
})

it("a request is refused if maxWaiting requests are delayed under one of its rules when its result arrives", async () => {
  const { enter, answer, log } = setUp(() => true)
  const leaky = ruleCheck("leaky", 10, 1, { algorithm: "leaky-bucket", burst: 5 })
  enter("goes", [leaky])
  enter("takes", [ruleCheck("one", 1)])
  for (let i = 0; i < 2; i++) await answer()
  enter("is held", [leaky])
  // No request is held yet when it arrives, and under its other rule none is ever held.
  enter("finds one", [leaky, ruleCheck("one", 1)], { maxWaiting: 1 })
  enter("lets two", [leaky, ruleCheck("one", 1)], { maxWaiting: 2 })
  for (let i = 0; i < 3; i++) await answer()
  expect(log).toEqual(["0 goes", "0 takes", "0 finds one: refused by one"])
})

it("a new request is refused if maxWaiting requests are already delayed by the leaky bucket", async () => {
  const { enter, pass, log } = setUp()
  const leaky = ruleCheck("leaky", 1, 1, { algorithm: "leaky-bucket", burst: 5 })
  for (const name of ["goes", "is delayed"]) enter(name, [leaky])
  enter("finds one", [leaky], { maxWaiting: 1 })
  enter("allows two", [leaky], { maxWaiting: 2 })
  for (const ms of [0, SECOND, SECOND]) await pass(ms)
  expect(log).toEqual(["0 goes", "0 finds one: refused by leaky", "1000 is delayed", "2000 allows two"])
})

it("a request with maxWaiting 0 is refused with its delay if the leaky bucket would delay it", async () => {
  const { enter, room, calls } = setUp()
  const leaky = ruleCheck("leaky", 1, 1, { algorithm: "leaky-bucket", burst: 5 })
  enter("goes", [leaky])
  const patience = { maxWaitMs: 10 * SECOND, maxWaiting: 0, waitsFor: () => true }
  expect(room.enter([leaky], patience)).toMatchObject({ allowed: false, policy: "leaky", retryAfterMs: 1 })
  expect(calls.returns).toBe(1)
})

it("a new request does not wait if maxWaiting requests are delayed or waiting in total", async () => {
  const { enter, pass, log } = setUp()
  const leaky = ruleCheck("leaky", 1, 1, { algorithm: "leaky-bucket", burst: 2 })
  for (const name of ["goes", "is delayed", "waits"]) enter(name, [leaky])
  enter("finds two", [leaky], { maxWaiting: 2, onWait: () => expect.unreachable("it waits") })
  await pass(0)
  expect(log).toEqual(["0 goes", "0 finds two: refused by leaky"])
})

it("a request is not refused for its maxWaiting while the first request repeats a store call with a stale result", async () => {
  let isSlow = false
  const { decider, room, enter, answer, pending, log } = setUp(() => isSlow)
  const other = await decider.take([ruleCheck("one", 3, 3)])
  isSlow = true
  for (const name of ["a", "b", "c"]) enter(name, [ruleCheck("one", 3)], { maxWaiting: 1 })
  room.wake(await decider.corrections.refund(other))
  while (pending.length > 0) await answer()
  expect(log).toEqual(["0 a", "0 b", "0 c"])
})
