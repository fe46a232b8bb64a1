import { setImmediate as nextTurn } from "node:timers/promises"
import { expect, it } from "vitest"
import { ask, SECOND, setUp } from "./testing/room.ts"

it("a line is served at once however long it is, where there are units for all", async () => {
  const { enter, pass, log, calls } = setUp()
  const count = 2_000
  enter("all", [ask("one", count, count)])
  const patience = { maxWaiting: count }
  for (let i = 0; i < count; i++) enter(`${i}`, [ask("one", count)], patience)
  await nextTurn()
  await pass(SECOND)
  expect(log).toEqual(["0 all", ...Array.from({ length: count }, (_, i) => `${SECOND} ${i}`)])
  expect(calls.takes).toBe(1 + 1 + count)
})

it("who is admitted at once does not listen to its signal", async () => {
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
  enter("goes on", [ask("one", 1)], { signal })
  expect(listeners).toBe(0)
  enter("waits", [ask("one", 1)], { signal })
  expect(listeners).toBe(1)
  await nextTurn()
  expect(log).toEqual(["0 goes on"])
})

it("who is the first by the time it is granted units in vain asks for them again at once", async () => {
  let isSlow = false
  const { clock, decider, enter, answer, log, calls } = setUp(() => isSlow)
  const leaving = new AbortController()
  await decider.take([ask("one", 3)])
  isSlow = true
  enter("dear", [ask("one", 3, 3)], { signal: leaving.signal })
  enter("cheap", [ask("one", 3)])
  await answer()
  leaving.abort(new Error("gone"))
  await nextTurn()
  Object.assign(clock, { wait: () => expect.unreachable("there are units") })
  await answer()
  await answer()
  expect([log, calls.takes]).toEqual([["0 dear: gone", "0 cheap"], 4])
})
