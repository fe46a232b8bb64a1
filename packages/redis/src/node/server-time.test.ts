import { describe, expect, it } from "vitest"
import { ServerTime } from "./server-time.ts"

/** A reply, with the server's time, the send time of its call, and the time at which the reply was received. */
type Reply = readonly [serverMs: number, sentAtMs: number, receivedAtMs: number]

function learnt(...replies: readonly Reply[]): ServerTime {
  const time = new ServerTime()
  for (const reply of replies) time.learn(...reply)
  return time
}

describe("ServerTime", () => {
  it.each<readonly [what: string, next: Reply, backMs: number]>([
    ["an hour, less the uncertainty of both replies", [50_110 - 3_600_000, 200, 230], 3_600_000 - 22],
    ["zero, if both replies allow the same time", [50_088, 200, 230], 0],
    ["zero, if the clock was set forward", [60_000, 200, 230], 0],
  ])("returns how far the server's clock was set back: %s", (_, next, backMs) => {
    expect(learnt([50_000, 100, 110]).learn(...next)).toBe(backMs)
    expect(new ServerTime().learn(...next)).toBe(0)
  })

  it("returns no time before the first reply", () => {
    expect(new ServerTime().at(1_000)).toBeUndefined()
  })

  it("places the server's time at the middle of the round trip, plus half a millisecond", () => {
    const time = learnt([50_000, 100, 110])
    expect([time.at(105), time.at(205)]).toEqual([50_000.5, 50_100.5])
  })

  // According to the first reply, which took 10 ms, the server is 49,895.5 ms ahead.
  it.each<{ readonly what: string; readonly next: Reply; readonly aheadMs: number }>([
    { what: "trusts a faster reply", next: [50_002, 103, 108], aheadMs: 50_002.5 - 105.5 },
    { what: "trusts an equally fast reply", next: [50_101, 200, 210], aheadMs: 50_101.5 - 205 },
    { what: "ignores a slower reply", next: [50_103, 200, 211], aheadMs: 49_895.5 },
    { what: "ignores a slower reply for ten seconds", next: [60_001, 10_098, 10_110], aheadMs: 49_895.5 },
    {
      what: "trusts any reply after ten seconds",
      next: [60_001, 10_098, 10_111],
      aheadMs: 60_001.5 - 10_104.5,
    },
    {
      what: "detects no forward step if both replies allow the same time",
      next: [50_132, 200, 230],
      aheadMs: 49_895.5,
    },
    {
      what: "detects no backward step if both replies allow the same time",
      next: [50_088, 200, 230],
      aheadMs: 49_895.5,
    },
    {
      what: "detects that the server's clock was set forward",
      next: [50_133, 200, 230],
      aheadMs: 50_133.5 - 215,
    },
    {
      what: "detects that the server's clock was set back",
      next: [50_087, 200, 230],
      aheadMs: 50_087.5 - 215,
    },
    {
      what: "detects that the server's clock was set back by an hour",
      next: [50_110 - 3_600_000, 200, 230],
      aheadMs: 50_110.5 - 3_600_000 - 215,
    },
  ])("$what", ({ next, aheadMs }) => {
    expect(learnt([50_000, 100, 110], next).at(0)).toBe(aheadMs)
  })

  it("trusts a reply for ten seconds after that reply was received", () => {
    const time = learnt([50_000, 100, 110], [58_001, 8_100, 8_108], [66_004, 16_098, 16_110])
    expect(time.at(0)).toBe(58_001.5 - 8_104)
    time.learn(68_003, 18_098, 18_109)
    expect(time.at(0)).toBe(68_003.5 - 18_103.5)
  })
})
