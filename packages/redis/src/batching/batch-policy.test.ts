import { setTimeout as passed } from "node:timers/promises"
import { describe, expect, it } from "vitest"
import { BatchPolicy, type LoopTimes } from "./batch-policy.ts"

const CALLS_A_LOOK = 32
/** Number of samples without idle time after which a process counts as busy: (15/16) ^ 36 is less than a tenth. */
const UNTIL_BUSY = 36

/** Creates a batch policy for a fake event loop whose idle time the test controls. */
function policyByHand(restedMs = 1_000) {
  const loop = { restedMs, nowMs: 5_000 }
  const policy = new BatchPolicy((): LoopTimes => ({ ...loop }))
  const pass = (spentMs: number, rested: number) => {
    loop.nowMs += spentMs
    loop.restedMs += rested
  }
  const send = (calls: number) => {
    for (let sent = 0; sent < calls; sent++) policy.sent()
  }
  return {
    policy,
    pass,
    send,
    /** Sends the calls of `times` samples. In each sample, the loop idles for `restedOf100` of 100 ms. */
    look: (restedOf100: number, times = 1) => {
      for (let done = 0; done < times; done++) {
        send(CALLS_A_LOOK - 1)
        pass(100, restedOf100)
        send(1)
      }
    },
    /** Returns the number of calls in flight at which a single request must wait. */
    enough: () => [0, 1, 2, 3].find((calls) => !policy.hasRoom(calls, 1)),
  }
}

describe("the limit of calls in flight", () => {
  it("drops from two to one after 36 samples without idle time", () => {
    const { look, pass, send, enough } = policyByHand()
    expect(enough()).toBe(2)
    look(0, UNTIL_BUSY - 1)
    expect(enough()).toBe(2)
    pass(100, 0)
    send(CALLS_A_LOOK - 1)
    expect(enough()).toBe(2)
    send(1)
    expect(enough()).toBe(1)
  })

  it.each<[number, number]>([
    [0, 1],
    [9, 1],
    [11, 2],
    [100, 2],
  ])("for a process that is idle for %i %% of the time is %i", (rested, calls) => {
    const { look, enough } = policyByHand()
    look(rested, 200)
    expect(enough()).toBe(calls)
  })

  it("remains at one while the process is rarely idle, and rises to two when it is idle more often", () => {
    const { look, enough } = policyByHand()
    look(0, 200)
    look(19, 200)
    expect(enough()).toBe(1)
    look(0, 200)
    look(100, 3)
    expect(enough()).toBe(1)
    look(100)
    expect(enough()).toBe(2)
  })

  it("drops to one again only after 101 samples without idle time", () => {
    const { look, enough } = policyByHand()
    look(0, 200)
    look(100, 4)
    const looks = Array.from({ length: 101 }, () => {
      look(0)
      return enough()
    })
    expect(looks).toEqual([...Array(100).fill(2), 1])
  })

  it("remains at one if a busy process is idle only while it receives no requests", () => {
    const { policy, pass, look, send, enough } = policyByHand()
    look(0, 200)
    for (let times = 0; times < 5; times++) {
      policy.paused()
      pass(10_000, 10_000)
      look(0)
    }
    expect(enough()).toBe(1)
    // Idle time between calls, or before a pause, still counts.
    for (let times = 0; times < 4; times++) {
      pass(100, 100)
      policy.paused()
      pass(10_000, 0)
      send(CALLS_A_LOOK)
    }
    expect(enough()).toBe(2)
  })

  it("remains at two if the process is idle during pauses between bursts of requests", () => {
    const { policy, pass, look, enough } = policyByHand()
    for (let times = 0; times < 200; times++) {
      policy.paused()
      pass(1_000, 1_000)
      look(0)
    }
    expect(enough()).toBe(2)
  })

  it("is not affected by a sample in which no time has passed", () => {
    const { look, send, enough } = policyByHand()
    send(CALLS_A_LOOK)
    look(0, UNTIL_BUSY)
    expect(enough()).toBe(1)
  })

  it("remains at two if the runtime does not report idle time", () => {
    const { look, enough } = policyByHand(0)
    look(0, 200)
    expect(enough()).toBe(2)
  })
})

describe("with many waiting requests", () => {
  it("even a busy process has up to four calls in flight", () => {
    const { policy, look } = policyByHand()
    look(0, UNTIL_BUSY)
    expect([1, 2, 3, 4].map((calls) => policy.hasRoom(calls, 32))).toEqual([true, true, true, false])
    expect(policy.hasRoom(1, 31)).toBe(false)
  })

  it("an idle process splits them into several calls, but a busy process sends one call", () => {
    const { policy, look } = policyByHand()
    expect(policy.mostRequests(0, 200)).toBe(100)
    look(0, UNTIL_BUSY)
    expect(policy.mostRequests(0, 200)).toBe(200)
    expect(policy.mostRequests(0, 2_000)).toBe(512)
    expect(policy.mostRequests(0, 3)).toBe(32)
  })
})

it("the batch policy measures the idle time of the real event loop", async () => {
  const policy = new BatchPolicy()
  const look = async (betweenMs: number): Promise<void> => {
    if (betweenMs > 0) await passed(betweenMs)
    for (let sent = 0; sent < CALLS_A_LOOK; sent++) policy.sent()
  }
  const isBusy = (): boolean => !policy.hasRoom(1, 1)
  // However busy the machine is, the loop idles in some of these samples.
  for (let looks = 0; looks < 5; looks++) await look(20)
  expect(isBusy()).toBe(false)
  for (let looks = 0; looks < 200; looks++) await look(0)
  expect(isBusy()).toBe(true)
  for (let looks = 0; looks < 100 && isBusy(); looks++) await look(20)
  expect(isBusy()).toBe(false)
})
