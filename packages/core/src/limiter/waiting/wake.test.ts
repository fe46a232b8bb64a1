import { describe, expect, it } from "vitest"
import { ask, SECOND } from "../../decision/testing/asks.ts"
import type { Line } from "./line.ts"
import { Lines } from "./lines.ts"
import { setUp } from "./testing/room.ts"
import { Ticket } from "./ticket.ts"
import { wakenedBy } from "./wake.ts"

describe("two who sleep in one line, as the one that came first has come back from another", () => {
  /** "early" waits for its own counter for a second, then both for that of all, which is full for ten. */
  async function setUpTwo(early: number, late: number) {
    const room = setUp()
    const { decider, enter, pass } = room
    const all = (cost: number) => ask("all", 4, cost, { windowMs: 10 * SECOND })
    const own = ask("own", 1)
    await decider.take([own])
    enter("early", [own, all(early)])
    const other = await decider.take([all(4)])
    enter("late", [all(late)])
    await pass(SECOND)
    return { ...room, all, other }
  }

  it("are both admitted when units for both come back at once", async () => {
    const { decider, room, pass, log, all, other } = await setUpTwo(1, 2)
    room.wake(await decider.refund(other))
    await pass(0)
    expect(log).toEqual(["1000 early", "1000 late"])
    expect((await decider.peek([all(1)])).remaining).toBe(1)
  })

  it("are admitted in order when there are units for one of them", async () => {
    const { decider, room, pass, log, other } = await setUpTwo(3, 2)
    room.wake(await decider.refund(other))
    await pass(0)
    expect(log).toEqual(["1000 early"])
    await pass(9 * SECOND)
    expect(log.slice(1)).toEqual(["10000 late"])
  })
})

describe("of those who sleep in a line, one whose units came back in vain wakes", () => {
  /** Two who asked for the same counter, one after the other: the second one had units in vain. */
  function sleeperAndVain(costs: { readonly sleeper: number; readonly inVain: number }) {
    const lines = new Lines()
    const other = ask("other", 9)
    const [dear, cheap] = [ask("one", 9, costs.sleeper), ask("one", 9, costs.inVain)]
    const patience = { maxWaitMs: Number.POSITIVE_INFINITY, maxWaiting: 9, waitsFor: () => true }
    const sleeper = new Ticket([dear], [dear], patience, 0)
    const inVain = new Ticket([other, cheap], [other, cheap], patience, 0)
    for (const ticket of [sleeper, inVain]) {
      lines.stand(ticket)
      ticket.tryNow()
    }
    lines.sleep(sleeper, dear)
    const line = lines.find(dear) as Line<Ticket>
    return { lines, line, sleeper, inVain, other, dear }
  }

  it("those that they are enough for", () => {
    const { line, sleeper, inVain, dear } = sleeperAndVain({ sleeper: 2, inVain: 2 })
    expect(wakenedBy(line, dear, inVain)).toEqual([sleeper])
  })

  it("nobody else who was refused before, where it waits there and elsewhere", () => {
    const { line, inVain, dear } = sleeperAndVain({ sleeper: 3, inVain: 2 })
    expect(wakenedBy(line, dear, inVain)).toEqual([])
  })

  it("all, where it waits in other lines only: what it has asked since may be something else", () => {
    const { lines, line, sleeper, inVain, other, dear } = sleeperAndVain({ sleeper: 3, inVain: 2 })
    lines.park(inVain, other)
    expect(wakenedBy(line, dear, inVain)).toEqual([sleeper])
  })
})
