import { setImmediate as nextTurn } from "node:timers/promises"
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { countFakeTimers } from "../../../core/src/ground/testing/fake-timers.ts"
import { countHeldTimers } from "../../../core/src/ground/testing/held-timers.ts"
import { LOOK_AGAIN_MS } from "../node/node.ts"
import { readySenderByHand, senderByHand } from "./testing/sender-by-hand.ts"

const REPLICA = "Redis is a replica, and its client did not find the primary in time."
const SILENT = "Redis did not respond in time."
/** Returns the message while the circuit breaker is open. */
const tryingAfter = (reason: string) => `${reason} The store keeps trying in the background.`
const TOO_LATE = "The request reached Redis after its deadline, so it was not counted."
const CLOSED = "closed"

/** Returns the number of timers that the package has set. */
let timers: () => number

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] })
  timers = countFakeTimers("/packages/redis/src/")
})
afterEach(() => void vi.useRealTimers())

describe("a batch sender", () => {
  it("sends a request immediately if fewer than two calls are in flight, and otherwise when a call ends", async () => {
    const { takeNow, names, answer, calls } = await readySenderByHand()
    await takeNow("a", "b", "c")
    expect(names()).toEqual([["a"], ["b"]])
    await takeNow("d")
    await answer(calls[0])
    expect(names()).toEqual([["a"], ["b"], ["c", "d"]])
    await takeNow("e")
    await answer(calls[2])
    expect(names()).toEqual([["a"], ["b"], ["c", "d"], ["e"]])
  })

  it("sends all requests from one callback in one call, in order", async () => {
    const { take, names, told, answer, calls } = await readySenderByHand()
    take("a")
    take("b")
    await Promise.resolve().then(() => take("c"))
    await nextTurn()
    expect(names()).toEqual([["a", "b"], ["c"]])
    await answer(calls[0])
    expect(told).toEqual({ a: "granted", b: "granted" })
  })

  it.each<{ waiting: number; underWay: readonly string[]; sizes: readonly number[] }>([
    { waiting: 32, underWay: [], sizes: [32] },
    { waiting: 33, underWay: [], sizes: [32, 1] },
    { waiting: 70, underWay: [], sizes: [35, 35] },
    { waiting: 70, underWay: ["a"], sizes: [64] },
    { waiting: 128, underWay: [], sizes: [64, 64] },
    { waiting: 200, underWay: [], sizes: [64, 64, 64] },
    { waiting: 300, underWay: [], sizes: [64, 64, 64, 64] },
  ])(
    "splits $waiting requests into calls of $sizes requests (already in flight: $underWay.length)",
    async (row) => {
      const { takeNow, takeMany, names } = await readySenderByHand()
      await takeNow(...row.underWay)
      takeMany(row.waiting)
      await nextTurn()
      const sent = names().slice(row.underWay.length)
      expect(sent.map(({ length }) => length)).toEqual(row.sizes)
      const places = sent.flat().map((name) => Number(name.split(" ").at(-1)))
      expect(places).toEqual(places.map((_, i) => i))
    },
  )

  it.each<{ waiting: number; times: readonly number[] }>([
    { waiting: 32, times: [32] },
    { waiting: 300, times: [150, 150] },
    { waiting: 2_000, times: [512, 512, 512, 464] },
  ])("merges $waiting requests of one client into calls of $times requests", async ({ waiting, times }) => {
    const { take, calls } = await readySenderByHand()
    for (let i = 0; i < waiting; i++) take("a")
    await nextTurn()
    expect(calls.map((call) => [call.names, call.times])).toEqual(times.map((each) => [["a"], each]))
  })

  it("sends the earliest deadline of a call in the server's time, which it requests only once", async () => {
    const { take, calls, names, timeCalls, answerTime } = senderByHand()
    take("a", 80)
    take("b", 50)
    await nextTurn()
    take("c", 70)
    await nextTurn()
    expect([names(), timeCalls.length]).toEqual([[], 1])
    await answerTime(timeCalls[0])
    expect([names(), timeCalls.length]).toEqual([[["a", "b", "c"]], 1])
    expect(calls[0]?.untilMs).toBe(50)
  })

  it("requests the server's time again if its first request for the time got no reply", async () => {
    const { takeNow, pass, names, told, timeCalls, answerTime } = senderByHand()
    await takeNow("a")
    await pass(30)
    await takeNow("b")
    await pass(20)
    expect([names(), told, timeCalls.length]).toEqual([[], { a: SILENT }, 2])
    await answerTime(timeCalls[1])
    expect(names()).toEqual([["b"]])
  })

  it("restarts the timeouts of waiting requests when the server's first reply arrives, but not later", async () => {
    const made = senderByHand()
    const { take, takeNow, pass, timeCalls, calls, told, answerTime, answer, moveOn } = made
    take("a")
    await pass(45)
    take("b")
    await nextTurn()
    await answerTime(timeCalls[0])
    await pass(49)
    expect([calls[0]?.names, told]).toEqual([["a", "b"], {}])
    await answer(calls[0])
    expect(told).toEqual({ a: "granted", b: "granted" })
    moveOn()
    await takeNow("c")
    await pass(45)
    await answerTime(timeCalls[1])
    await pass(5)
    await nextTurn()
    expect(told.c).toBe(SILENT)
  })

  it("rejects a request after its timeout, both before and after the server's first reply", async () => {
    const { takeNow, pass, timeCalls, told, answerTime } = senderByHand()
    await takeNow("a")
    await pass(50)
    await nextTurn()
    expect(told.a).toBe(SILENT)
    await answerTime(timeCalls[0])
    await takeNow("b")
    await pass(50)
    await nextTurn()
    expect(told.b).toBe(SILENT)
  })
})

describe("a reply", () => {
  it("resolves each request, and passes refusals to the listener with their send time", async () => {
    const { pass, take, answer, calls, told, listened } = await readySenderByHand()
    await pass(3)
    take("a")
    take("b")
    await nextTurn()
    await pass(7)
    await answer(calls[0], ["b"])
    expect(told).toEqual({ a: "granted", b: "refused" })
    expect(listened).toEqual({ refused: [["b", false, 3]], lost: [], late: [] })
  })

  it("that reports an invalid counter rejects only the requests for that counter's key", async () => {
    const { take, calls, told, kinds, listened } = await readySenderByHand()
    for (const name of ["a", "b", "c+d"]) take(name)
    await nextTurn()
    const state = "w:1700000000000:0:1"
    calls[0]?.reply([1_700_000_000_000, 0, state, state, 0, 1, 0])
    await nextTurn()
    const what = "does not contain a valid counter. Delete it, and find out what else writes such keys."
    expect([told, kinds]).toEqual([
      {
        a: `The Redis key a ${what}`,
        b: "granted",
        "c+d": `The Redis key c, or another key of the request, ${what}`,
      },
      { a: "invalid-answer", "c+d": "invalid-answer" },
    ])
    expect(listened).toEqual({ refused: [], lost: ["a", "c"], late: [] })
  })

  it("that arrives after the timeout still informs the listener of grants and refusals", async () => {
    const { take, pass, answer, calls, told, listened } = await readySenderByHand()
    take("a")
    take("b")
    take("c", 80)
    await nextTurn()
    await pass(60)
    await answer(calls[0], ["b"])
    expect(told).toEqual({ a: SILENT, b: SILENT, c: "granted" })
    expect(listened).toEqual({ refused: [["b", false, 0]], lost: [], late: [["a"]] })
  })

  it.each([
    ["a lost connection", "Connection is closed.", ["a", "b"]],
    ["a replica, which has counted nothing", "READONLY You can't write against a read only replica.", []],
  ])("makes the sender report the counters that may have changed: %s", async (_case, message, lost) => {
    const { take, calls, fail, listened } = await readySenderByHand()
    take("a")
    take("b")
    await nextTurn()
    await fail(calls[0], message)
    expect(listened.lost).toEqual(lost)
  })

  it("makes the sender report the counters that may have changed, even after the call's timeout", async () => {
    const { take, pass, calls, fail, listened } = await readySenderByHand()
    take("a")
    await nextTurn()
    await pass(60)
    expect(listened.lost).toEqual([])
    await fail(calls[0], "Connection is closed.")
    expect(listened.lost).toEqual(["a"])
  })

  it("is repeated once if it reached the server after its deadline", async () => {
    const { take, answerTooLate, calls, names, told, kinds } = await readySenderByHand()
    take("a")
    take("b")
    await nextTurn()
    await answerTooLate(calls[0])
    expect([names(), told]).toEqual([
      [
        ["a", "b"],
        ["a", "b"],
      ],
      {},
    ])
    await answerTooLate(calls[1])
    expect([names().length, told]).toEqual([2, { a: TOO_LATE, b: TOO_LATE }])
    expect(kinds).toEqual({ a: "timeout", b: "timeout" })
  })
})

describe("a deadline", () => {
  it("applies to a single request, whether that request is in flight or still waiting", async () => {
    const { take, takeNow, pass, told } = await readySenderByHand()
    take("a")
    take("b", 80)
    await takeNow("in a separate call")
    take("c", 60)
    await nextTurn()
    await pass(49)
    expect(told).toEqual({})
    await pass(1)
    expect(told).toEqual({ a: SILENT, "in a separate call": SILENT })
    await pass(10)
    expect(told).toMatchObject({ c: SILENT })
    await pass(19)
    expect(told).not.toHaveProperty("b")
    await pass(1)
    expect(told).toMatchObject({ b: SILENT })
  })

  it("is measured from the end of the requesting callback, because nothing is sent while the callback runs", async () => {
    const { take, names, answer, calls, pass, told } = await readySenderByHand()
    take("a")
    vi.advanceTimersByTime(1_000)
    take("b", 60)
    await nextTurn()
    expect([names(), calls[0]?.untilMs]).toEqual([[["a", "b"]], 1_050])
    await pass(49)
    expect(told).toEqual({})
    await answer(calls[0])
    expect(told).toEqual({ a: "granted", b: "granted" })
  })

  it("is checked by a timer that fires only when the deadline passes", async () => {
    const { take, pass, told } = await readySenderByHand()
    take("a")
    take("b", 80)
    await nextTurn()
    await pass(50)
    vi.advanceTimersToNextTimer()
    await nextTurn()
    expect(told).toEqual({ a: SILENT, b: SILENT })
  })

  it("that passes for every request of a call lets the sender send another call", async () => {
    const { takeNow, pass, names } = await readySenderByHand()
    await takeNow("a", "b")
    await pass(30)
    await takeNow("c")
    await pass(20)
    expect(names()).toEqual([["a"], ["b"], ["c"]])
  })

  it("that passes while the process is blocked prevents the sending of a waiting request", async () => {
    const { takeNow, names, told, calls, answer } = await readySenderByHand()
    await takeNow("a", "b", "c")
    vi.advanceTimersByTime(50)
    await answer(calls[0])
    expect(names()).toEqual([["a"], ["b"]])
    expect(told).toEqual({ a: "granted", b: SILENT, c: SILENT })
  })

  it.each<{ what: string; code: string | undefined }>([
    { what: "came too late", code: undefined },
    { what: "must be tried again", code: "TRYAGAIN" },
  ])(
    "that passes while the process is blocked causes a timeout error, even if the call $what",
    async ({ code }) => {
      const { takeNow, fail, answerTooLate, names, told, calls } = await readySenderByHand()
      await takeNow("a")
      vi.advanceTimersByTime(50)
      if (code === undefined) await answerTooLate(calls[0])
      else await fail(calls[0], code)
      expect([names(), told]).toEqual([[["a"]], { a: SILENT }])
    },
  )
})

describe("a server's circuit breaker", () => {
  it("opens after five failures in a row, and rejects waiting and new requests", async () => {
    const { takeNow, take, fail, answer, calls, told, names } = await readySenderByHand()
    const failing = async (count: number) => {
      for (let i = 0; i < count; i++) {
        await takeNow(`failing ${i}`)
        await fail(calls.at(-1), "gone")
      }
    }
    await failing(4)
    await takeNow("a")
    await answer(calls.at(-1))
    await failing(4)
    await takeNow("b", "c", "d")
    expect([told.a, names().length]).toEqual(["granted", 11])
    await fail(calls[9], "gone")
    expect(told).toMatchObject({ b: "Redis failed: gone", d: tryingAfter("Redis failed: gone.") })
    take("e")
    await nextTurn()
    expect([told.e, names().length]).toEqual([tryingAfter("Redis failed: gone."), 11])
  })

  it("counts a call that times out as one failure, even if a reply follows", async () => {
    const { takeNow, pass, fail, answer, calls, told, take, names } = await readySenderByHand()
    for (const name of ["a", "b", "c", "d"]) {
      await takeNow(name)
      await pass(50)
      expect(told[name]).toBe(SILENT)
      if (name < "c") await fail(calls.at(-1), "gone")
    }
    await takeNow("e")
    expect(names()).toHaveLength(5)
    // A reply that is too late for its caller counts as a failure.
    await answer(calls[2])
    await answer(calls[3])
    await pass(50)
    take("f")
    await nextTurn()
    expect([told.f, names().length]).toEqual([tryingAfter(SILENT), 5])
  })

  it("counts a failed request for the server's time as one failure, even if many requests wait", async () => {
    const { takeNow, take, fail, answerTime, timeCalls, told, names } = senderByHand()
    await takeNow("a", "b", "c", "d", "e")
    await fail(timeCalls[0], "gone")
    expect(new Set(Object.values(told))).toEqual(new Set(["Redis failed: gone"]))
    take("f")
    await nextTurn()
    expect([timeCalls.length, told.f]).toEqual([2, undefined])
    await answerTime(timeCalls[1])
    expect(names()).toEqual([["f"]])
  })

  it("rejects requests that are waiting for calls in flight when it opens", async () => {
    const { take, takeNow, fail, pass, calls, told } = await readySenderByHand()
    for (let i = 0; i < 4; i++) {
      await takeNow(`failing ${i}`)
      await fail(calls.at(-1), "gone")
    }
    take("a", 80)
    await nextTurn()
    take("b", 80)
    await nextTurn()
    take("c", 50)
    take("d", 80)
    await nextTurn()
    await pass(50)
    take("e")
    await nextTurn()
    expect(told).toMatchObject({ c: SILENT, d: tryingAfter(SILENT), e: tryingAfter(SILENT) })
    expect([told.a, told.b]).toEqual([undefined, undefined])
  })
})

describe("a server that cannot be written to", () => {
  it("receives no call while its client is not connected, which the sender checks at intervals", async () => {
    const { redis, take, takeNow, names, pass } = await readySenderByHand()
    redis.isReady = false
    take("a", 80)
    await nextTurn()
    const before = timers()
    expect(before).toBeGreaterThan(0)
    await takeNow("b", "c")
    expect([names(), timers()]).toEqual([[], before])
    await pass(LOOK_AGAIN_MS)
    redis.isReady = true
    await pass(LOOK_AGAIN_MS - 1)
    expect(names()).toEqual([])
    await pass(1)
    expect(names()).toEqual([["a", "b", "c"]])
  })

  it("is called again at intervals while a slot migrates, with the earliest requests first", async () => {
    const { take, takeNow, fail, pass, names, calls, told, answer, answerTooLate, redis } =
      await readySenderByHand()
    const moving = "TRYAGAIN Multiple keys request during rehashing of slot"
    take("a", 80)
    await nextTurn()
    await fail(calls[0], moving)
    take("b", 80)
    await pass(24)
    expect(names()).toEqual([["a"]])
    await pass(1)
    expect(names()).toEqual([["a"], ["a", "b"]])
    await fail(calls[1], moving)
    await pass(25)
    await takeNow("c")
    // A rejected call does not count as a call that came too late.
    await answerTooLate(calls[2])
    expect(names().slice(2)).toEqual([["a", "b"], ["c"], ["a", "b"]])
    await answer(calls[4])
    expect([told, redis.reconnects]).toEqual([{ a: "granted", b: "granted" }, 0])
  })

  it("makes the client reconnect if it is a replica, but only after all calls have ended", async () => {
    const { takeNow, fail, answer, pass, names, calls, told, redis } = await readySenderByHand()
    await takeNow("a", "b")
    await fail(calls[0], "READONLY You can't write against a read only replica.")
    await takeNow("c")
    expect([names(), redis.reconnects]).toEqual([[["a"], ["b"]], 0])
    await answer(calls[1])
    expect(redis.reconnects).toBe(1)
    await pass(25)
    expect(names()).toEqual([["a"], ["b"], ["a", "c"]])
    await answer(calls[2])
    expect([told, redis.reconnects]).toEqual([{ a: "granted", b: "granted", c: "granted" }, 1])
  })

  it("receives no new call after a replica's error until the other calls have ended", async () => {
    const { takeNow, fail, answer, pass, names, calls } = await readySenderByHand()
    await takeNow("a", "b")
    await fail(calls[0], "READONLY You can't write against a read only replica.")
    await pass(40)
    expect(names()).toEqual([["a"], ["b"]])
    await answer(calls[1])
    expect(names()).toEqual([["a"], ["b"], ["a"]])
  })

  it("makes the client reconnect if it rejects the request for its time because it is a replica", async () => {
    const { takeNow, fail, answerTime, pass, timeCalls, names, redis } = senderByHand()
    await takeNow("a")
    await fail(timeCalls[0], "READONLY You can't write against a read only replica.")
    expect([redis.reconnects, timeCalls.length]).toEqual([1, 1])
    await pass(25)
    await answerTime(timeCalls[1])
    expect(names()).toEqual([["a"]])
  })

  it("is reported as a replica for only a second after its error", async () => {
    const { takeNow, fail, pass, calls, told, redis } = await readySenderByHand()
    await takeNow("a")
    await fail(calls[0], "READONLY You can't write against a read only replica.")
    redis.isReady = false
    await pass(950)
    await takeNow("b")
    await pass(50)
    await takeNow("c")
    await pass(50)
    expect(told).toEqual({
      a: REPLICA,
      b: REPLICA,
      c: "Redis did not respond in time, because its client has no connection.",
    })
  })
})

it("a closed batch sender rejects pending and new requests, and leaves no timer", async () => {
  const { sender, redis, takeNow, fail, calls, told, names } = await readySenderByHand()
  await takeNow("a", "b")
  await fail(calls[1], "TRYAGAIN")
  await takeNow("c")
  redis.isReady = false
  sender.close(new Error(CLOSED))
  await takeNow("d")
  expect(told).toEqual({ a: CLOSED, b: CLOSED, c: CLOSED, d: CLOSED })
  expect([names(), timers()]).toEqual([[["a"], ["b"]], 0])
})

it.each<{ when: string; readFirst: boolean }>([
  { when: "before", readFirst: true },
  { when: "after", readFirst: false },
])(
  "a closed batch sender does not reconnect the client, even if a replica's error arrived $when closing",
  async ({ readFirst }) => {
    const { sender, redis, takeNow, fail, answer, calls } = await readySenderByHand()
    await takeNow("a", "b")
    const hear = () => fail(calls[0], "READONLY You can't write against a read only replica.")
    if (readFirst) await hear()
    sender.close(new Error(CLOSED))
    if (!readFirst) await hear()
    await answer(calls[1])
    expect([redis.reconnects, timers()]).toEqual([0, 0])
  },
)

it("a batch sender keeps the process alive only while a request waits for a reply", () =>
  countHeldTimers(async (held) => {
    vi.useRealTimers()
    const { sender, take, answer, calls, told } = await readySenderByHand(60_000)
    const before = held()
    take("a", 60_000)
    await nextTurn()
    take("b", 60_000)
    await nextTurn()
    const seen = [held() - before]
    await answer(calls[0])
    seen.push(held() - before)
    await answer(calls[1])
    seen.push(held() - before)
    sender.close(new Error(CLOSED))
    expect([told, seen]).toEqual([{ a: "granted", b: "granted" }, [1, 1, 0]])
  }))
