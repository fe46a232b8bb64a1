import { setImmediate as nextTurn } from "node:timers/promises"
import { describe, expect, it } from "vitest"
import type { Ask } from "../../decision/rule-check.ts"
import { ask, deciderOver, SECOND } from "../../decision/testing/asks.ts"
import { manualClock } from "../../ground/clock.ts"
import { memoryStore } from "../../stores/memory/memory-store.ts"
import { Lines } from "./lines.ts"
import { Slots } from "./slots.ts"
import { setUp } from "./testing/room.ts"
import { Ticket } from "./ticket.ts"

const leaky = (name: string, limit = 10): Ask => ask(name, limit, 1, { algorithm: "leaky-bucket", burst: 5 })

/** One that leaves, and what ends its waiting. */
function leaver() {
  const leaving = new AbortController()
  const leave = async (): Promise<void> => {
    leaving.abort(new Error("gone"))
    await nextTurn()
  }
  return { patience: { signal: leaving.signal }, leave }
}

describe("the turns of one who leaves, in several leaky buckets", () => {
  it("go back at once in each where it has the last one, and stay taken where another one has a later one", async () => {
    const { enter, pass, log } = setUp()
    const { patience, leave } = leaver()
    const [x, y] = [leaky("x"), leaky("y")]
    enter("first", [x, y])
    enter("leaves", [x, y], patience)
    enter("held", [y])
    await leave()
    enter("next in x", [x])
    enter("next in y", [y])
    for (let i = 0; i < 3; i++) await pass(100)
    expect(log.slice(2)).toEqual(["100 next in x", "200 held", "300 next in y"])
  })

  /** One leaves that is asking in a bucket, and one is held there with a later turn, whom another rule does not delay. */
  async function setUpLater() {
    let isSlow = false
    const room = setUp(() => isSlow)
    const [gone, held] = [leaver(), leaver()]
    const [x, y] = [leaky("x"), leaky("y")]
    room.enter("first", [x])
    isSlow = true
    room.enter("leaves", [x], gone.patience)
    room.enter("held", [y, x], held.patience)
    await gone.leave()
    await room.answer(1)
    await room.answer(0)
    isSlow = false
    return { ...room, x, held }
  }

  it("stay taken while another one has a later one, whatever other rules say of that one", async () => {
    const { enter, pass, log, x } = await setUpLater()
    enter("next", [x])
    for (let i = 0; i < 3; i++) await pass(100)
    expect(log.slice(2)).toEqual(["200 held", "300 next"])
  })

  it("go back when that one leaves, too", async () => {
    const { enter, pass, log, x, held } = await setUpLater()
    await held.leave()
    enter("next", [x])
    await pass(100)
    expect(log.slice(3)).toEqual(["100 next"])
  })
})

describe("turns in the same millisecond", () => {
  it("are one after the other: that of who leaves stays taken for who is held behind it", async () => {
    const { enter, calls } = setUp()
    const { patience, leave } = leaver()
    enter("first", [leaky("x", 5_000)])
    enter("leaves", [leaky("x", 5_000)], patience)
    enter("held", [leaky("x", 5_000)])
    await leave()
    expect(calls.returns).toBe(0)
  })

  it("are no later ones: that of who left before it was known goes back at once", async () => {
    let isSlow = false
    const { enter, answer, calls } = setUp(() => isSlow)
    const { patience, leave } = leaver()
    enter("first", [leaky("x", 5_000)])
    isSlow = true
    enter("leaves", [leaky("x", 5_000)], patience)
    enter("held", [leaky("x", 5_000)])
    await leave()
    await answer(1)
    await answer(0)
    expect(calls.returns).toBe(1)
  })
})

describe("units of one who leaves while it is asking", () => {
  it("wake who lacks more than them: it is not behind any more", async () => {
    let isSlow = false
    const { decider, enter, answer, log } = setUp(() => isSlow)
    const { patience, leave } = leaver()
    const other = await decider.take([ask("one", 3)])
    isSlow = true
    enter("dear", [ask("one", 3, 3)])
    enter("leaves", [ask("one", 3)], patience)
    await answer()
    await leave()
    // The room does not hear of these.
    await decider.refund(other)
    await answer()
    await answer()
    expect(log).toEqual(["0 leaves: gone", "0 dear"])
  })
})

it("who was let in for want of a store has nothing to give back", async () => {
  const clock = manualClock()
  const decider = deciderOver(
    {
      ...memoryStore({ clock }),
      take() {
        throw new Error("down")
      },
    },
    clock,
    () => undefined,
  )
  const asks: readonly Ask[] = [{ ...leaky("x"), onStoreFailure: "allow" }]
  const patience = { maxWaitMs: SECOND, maxWaiting: 9, waitsFor: () => true }
  const [left, behind] = [new Ticket(asks, asks, patience, 0), new Ticket(asks, asks, patience, 0)]
  const lines = new Lines()
  lines.stand(behind)
  const woken: unknown[] = []
  const slots = new Slots(lines, decider, (counters) => void woken.push(...counters))
  const decision = await decider.take(asks)
  expect(decision).toMatchObject({ allowed: true, degraded: true })
  slots.refund(left, decision)
  await nextTurn()
  expect(woken).toEqual([])
})

it("a line is kept while there is something to give back in it, and forgotten then", async () => {
  const clock = manualClock()
  const decider = deciderOver(memoryStore({ clock }), clock)
  const asks = [leaky("x")]
  const patience = { maxWaitMs: SECOND, maxWaiting: 9, waitsFor: () => true }
  const [left, asking] = [new Ticket(asks, asks, patience, 0), new Ticket(asks, asks, patience, 0)]
  const lines = new Lines()
  lines.stand(asking)
  asking.step = "asking"
  for (const { line } of asking.places) line.asking++
  const woken: string[] = []
  const slots = new Slots(lines, decider, (counters) => {
    for (const { policy } of counters) woken.push(policy.name)
  })
  slots.refund(left, await decider.take(asks))
  lines.leave(asking)
  await nextTurn()
  expect([woken, lines.find(leaky("x"))?.isEmpty]).toEqual([[], false])
  for (let line = lines.nextDue(); line !== undefined; line = lines.nextDue()) slots.flush(line)
  await nextTurn()
  expect([woken, lines.find(leaky("x"))]).toEqual([["x"], undefined])
})
