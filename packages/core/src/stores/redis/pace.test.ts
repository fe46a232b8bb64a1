import { setTimeout as passed } from "node:timers/promises"
import { describe, expect, it } from "vitest"
import { type LoopTimes, Pace } from "./pace.ts"

const CALLS_A_LOOK = 32

/** A pace in a process whose event loop is told by hand. */
function paceByHand(restedMs = 1_000) {
  const loop = { restedMs, nowMs: 5_000 }
  const pace = new Pace((): LoopTimes => ({ ...loop }))
  return {
    pace,
    /** As many calls as there are from one look to the next, during which the loop rests for so much of each 100 ms. */
    look: (restedOf100: number) => {
      for (let sent = 1; sent < CALLS_A_LOOK; sent++) pace.sent()
      loop.nowMs += 100
      loop.restedMs += restedOf100
      pace.sent()
    },
    /** Calls in flight with which a single request has to wait. */
    enough: () => [0, 1, 2, 3].find((calls) => !pace.hasRoom(calls, 1)),
  }
}

describe("the calls that are sent at once", () => {
  it("are two, and one when the process has not rested while 32 were sent", () => {
    const { pace, look, enough } = paceByHand()
    expect(enough()).toBe(2)
    for (let sent = 1; sent < CALLS_A_LOOK; sent++) pace.sent()
    expect(enough()).toBe(2)
    pace.sent()
    // No time has passed, of which nothing can be said.
    expect(enough()).toBe(2)
    look(5)
    expect(enough()).toBe(1)
  })

  it.each<[number, number]>([
    [0, 1],
    [5, 1],
    [6, 2],
    [100, 2],
  ])("of a process that rests for %i %% of the time are %i", (rested, calls) => {
    const { look, enough } = paceByHand()
    look(rested)
    expect(enough()).toBe(calls)
  })

  it("stay one while it hardly rests, and are two again when it waits for them", () => {
    const { look, enough } = paceByHand()
    look(0)
    look(9)
    expect(enough()).toBe(1)
    look(10)
    expect(enough()).toBe(2)
  })

  it("are tried as one again only after a while when that made it wait", () => {
    const { look, enough } = paceByHand()
    look(0)
    look(50)
    const looks = Array.from({ length: 101 }, () => {
      look(0)
      return enough()
    })
    expect(looks).toEqual([...Array(100).fill(2), 1])
  })

  it("are two where the runtime does not tell how long it rests", () => {
    const { look, enough } = paceByHand(0)
    look(0)
    expect(enough()).toBe(2)
  })
})

describe("for many who wait", () => {
  it("a busy process, too, sends up to four calls", () => {
    const { pace, look } = paceByHand()
    look(0)
    expect([1, 2, 3, 4].map((calls) => pace.hasRoom(calls, 32))).toEqual([true, true, true, false])
    expect(pace.hasRoom(1, 31)).toBe(false)
  })

  it("a busy process sends all in one call, and one with time shares them out", () => {
    const { pace, look } = paceByHand()
    expect(pace.mostRequests(0, 200)).toBe(100)
    look(0)
    expect(pace.mostRequests(0, 200)).toBe(200)
    expect(pace.mostRequests(0, 2_000)).toBe(512)
    expect(pace.mostRequests(0, 3)).toBe(32)
  })
})

it("the event loop tells by itself whether it rests", async () => {
  const pace = new Pace()
  const send = (): void => {
    for (let sent = 0; sent < CALLS_A_LOOK; sent++) pace.sent()
  }
  const isBusy = (): boolean => !pace.hasRoom(1, 1)
  await passed(50)
  send()
  expect(isBusy()).toBe(false)
  const sinceMs = performance.now()
  while (performance.now() - sinceMs < 20);
  send()
  expect(isBusy()).toBe(true)
  await passed(50)
  send()
  expect(isBusy()).toBe(false)
})
