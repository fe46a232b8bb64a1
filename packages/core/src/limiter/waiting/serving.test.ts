import { setImmediate as nextTurn } from "node:timers/promises"
import { expect, it } from "vitest"
import { ruleCheck, SECOND } from "../../decision/testing/rule-checks.ts"
import { setUp } from "./testing/room.ts"

/** Returns the number of calls on the stack. */
function depthOfStack(): number {
  const { stackTraceLimit } = Error
  Error.stackTraceLimit = Number.POSITIVE_INFINITY
  const depth = new Error("depth").stack?.split("\n").length ?? 0
  Error.stackTraceLimit = stackTraceLimit
  return depth
}

it("a long queue with units for all requests is served at a constant stack depth", async () => {
  const depths: number[] = []
  const { enter, pass, log } = setUp(() => {
    depths.push(depthOfStack())
    return false
  })
  for (const name of ["all", "all of the next second"]) enter(name, [ruleCheck("one", 50, 50)])
  for (let i = 0; i < 50; i++) enter(`${i}`, [ruleCheck("one", 50)])
  await nextTurn()
  for (let i = 0; i < 2; i++) await pass(SECOND)
  expect(log.slice(2)).toEqual(Array.from({ length: 50 }, (_, i) => `${2 * SECOND} ${i}`))
  expect(new Set(depths.slice(-50)).size).toBe(1)
})

it("a new queue calls the store for all requests at the same time, and admits them in order", async () => {
  const { enter, answer, pending, log } = setUp(() => true)
  for (let i = 0; i < 5; i++) enter(`${i}`, [ruleCheck("one", 5)])
  await nextTurn()
  expect(pending).toHaveLength(5)
  // Respond to the first and the third request. The third request waits for the second.
  await answer(0)
  await answer(1)
  expect(log).toEqual(["0 0"])
  await answer(0)
  expect(log).toEqual(["0 0", "0 1", "0 2"])
})

it("a later request that may call the store does so while earlier results are still pending", async () => {
  const { enter, answer, pass, pending, log } = setUp(() => true)
  enter("all", [ruleCheck("one", 9, 9)])
  for (let i = 0; i < 9; i++) enter(`${i}`, [ruleCheck("one", 9)])
  while (pending.length > 0) await answer()
  await pass(SECOND)
  const asking = [pending.length]
  for (let i = 0; i < 3; i++) {
    await answer()
    asking.push(pending.length)
  }
  expect([asking, log]).toEqual([
    [1, 2, 3, 4],
    ["0 all", "1000 0", "1000 1", "1000 2"],
  ])
})

it("a queue allows at most 64 store calls at the same time, however many requests were admitted", async () => {
  const { enter, answer, pass, pending, log } = setUp(() => true)
  const all = 300
  enter("all", [ruleCheck("one", all, all)])
  enter("first", [ruleCheck("one", all)])
  while (pending.length > 0) await answer()
  for (let i = 0; i < 200; i++) enter(`${i}`, [ruleCheck("one", all)])
  await pass(SECOND)
  let most = 0
  for (; pending.length > 0; await answer()) most = Math.max(most, pending.length)
  expect([most, log.length]).toEqual([64, 202])
})

it("a request that is admitted immediately does not listen to its signal", async () => {
  const { enter, log } = setUp()
  const { signal } = new AbortController()
  let listeners = 0
  const { addEventListener } = signal
  Object.assign(signal, {
    addEventListener(...how: Parameters<typeof addEventListener>) {
      listeners++
      addEventListener.apply(signal, how)
    },
  })
  enter("goes on", [ruleCheck("one", 1)], { signal })
  expect(listeners).toBe(0)
  enter("waits", [ruleCheck("one", 1)], { signal })
  expect(listeners).toBe(1)
  await nextTurn()
  expect(log).toEqual(["0 goes on"])
})

it("a request whose grant was superseded calls the store again immediately if it has become the first", async () => {
  let isSlow = false
  const { clock, decider, enter, answer, log, calls } = setUp(() => isSlow)
  const leaving = new AbortController()
  await decider.take([ruleCheck("one", 3)])
  isSlow = true
  enter("dear", [ruleCheck("one", 3, 3)], { signal: leaving.signal })
  enter("cheap", [ruleCheck("one", 3)])
  await answer()
  leaving.abort(new Error("gone"))
  await nextTurn()
  Object.assign(clock, { wait: () => expect.unreachable("there are units") })
  await answer()
  await answer()
  expect([log, calls.takes]).toEqual([["0 dear: gone", "0 cheap"], 4])
})

it("a request that one rule refused is checked again immediately if units of that rule have come back since", async () => {
  let isSlow = false
  const { decider, room, enter, answer, log, calls } = setUp(() => isSlow)
  const [free, full] = [ruleCheck("free", 3), ruleCheck("full", 3)]
  const other = await decider.take([ruleCheck("full", 3, 3)])
  isSlow = true
  enter("first", [free, full])
  await decider.corrections.refund(other)
  room.wake([full])
  await answer()
  await answer()
  expect([log, calls.takes]).toEqual([["0 first"], 3])
})
