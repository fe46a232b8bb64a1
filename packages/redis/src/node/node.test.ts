import { AsyncLocalStorage } from "node:async_hooks"
import { setImmediate as nextTurn } from "node:timers/promises"
import { StoreUnavailableError } from "@sluice/core"
import type { StoreWarningEvent } from "@sluice/core/stores"
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { countFakeTimers } from "../../../core/src/ground/testing/fake-timers.ts"
import { PolicyTable } from "../scripts/script-input.ts"
import { TakeCall } from "../scripts/take-call.ts"
import { PEEK, TAKE } from "../scripts.ts"
import { AskedServer } from "../testing/asked-server.ts"
import { FIRST_HIT as POLICY } from "../testing/first-hit.ts"
import { EVICTIONS } from "./eviction-watch.ts"
import { type CallTimeout, LOOK_AGAIN_MS, Node, type Timekeeping } from "./node.ts"

const KEY = "app:sl2:{7f}counter0alice"
const NOW_MS = 1_700_000_000_000
/** The reply of TIME: seconds and microseconds. The fraction of a millisecond is truncated. */
const NOW = ["1700000000", "000999"]
const BY_SERVER: Timekeeping = { clock: undefined, isWide: false }

/** Returns the number of timers that the package has set, or of those for which the function returns true. */
let timers: ReturnType<typeof countFakeTimers>

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] })
  timers = countFakeTimers("/packages/redis/src/")
})
afterEach(() => void vi.useRealTimers())

function serving({ timekeeping = BY_SERVER }: { timekeeping?: Timekeeping } = {}) {
  const server = new AskedServer()
  return { server, node: new Node(server, timekeeping, KEY) }
}

/** Creates a server whose time is known. */
async function knowing() {
  const made = serving()
  const learning = made.node.learnTime()
  made.server.latest.answer(NOW)
  await learning
  made.server.asked.length = 0
  return made
}

async function pass(ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed++) {
    vi.advanceTimersByTime(1)
    await nextTurn()
  }
}

/** Returns an array that receives the promise's outcome once the promise has settled. */
function outcomeOf(promise: Promise<unknown>): unknown[] {
  const outcome: unknown[] = []
  promise.then(
    (value) => outcome.push(value),
    (error: Error) => outcome.push(error.message),
  )
  return outcome
}

function peek(node: Node, patience: CallTimeout = { withinMs: 20 }): Promise<unknown> {
  return node.ask(PEEK, [KEY], new PolicyTable(), [], patience)
}

/** Makes `times` calls, to which the server replies with an error. */
async function fail(server: AskedServer, node: Node, times: number, patience?: CallTimeout): Promise<void> {
  for (let i = 0; i < times; i++) {
    const outcome = outcomeOf(peek(node, patience))
    await nextTurn()
    server.latest.fail("ERR no")
    await nextTurn()
    expect(outcome).toEqual(["Redis failed: ERR no"])
  }
}

async function succeed(server: AskedServer, node: Node, patience?: CallTimeout): Promise<void> {
  const outcome = outcomeOf(peek(node, patience))
  await nextTurn()
  server.latest.answer([NOW_MS])
  await nextTurn()
  expect(outcome).toEqual([[NOW_MS]])
}

const UNCONNECTED = "Redis did not respond in time, because its client has no connection."
const KEEPS_TRYING = "The store keeps trying in the background."
const SILENT = "Redis did not respond in time."
const READONLY = "READONLY You can't write against a read only replica."

describe("the time of a server", () => {
  it("is requested once for all callers, with a key in the same slot that is not a counter's key", async () => {
    const { server, node } = serving()
    node.waitedFor(20)
    const outcomes = [outcomeOf(node.learnTime()), outcomeOf(node.learnTime())]
    expect(server.asked.map(({ what, keys, args }) => [what, keys, args])).toEqual([
      ["eval", ["app:sl2:{7f}"], []],
    ])
    expect(server.latest.script).toMatch(/'SET', KEYS\[1\], '', 'XX'.*'TIME'/)
    expect([node.knowsTime, node.timeOf(performance.now())]).toEqual([
      false,
      { nowMs: undefined, untilMs: undefined, isWide: false },
    ])
    server.latest.answer(NOW)
    await nextTurn()
    expect(outcomes).toEqual([[true], [true]])
    expect([node.knowsTime, node.timeOf(performance.now() + 50)]).toEqual([
      true,
      { nowMs: undefined, untilMs: NOW_MS + 50, isWide: false },
    ])
    expect(timers()).toBe(0)
  })

  it("is also read from a reply that contains integers", async () => {
    const { server, node } = serving()
    const learning = node.learnTime()
    server.latest.answer([1_700_000_000, 123_456])
    await learning
    expect(node.timeOf(performance.now()).untilMs).toBe(NOW_MS + 123)
  })

  it.each([["OK"], [[]], [["1700000000"]], [["x", "1"]], [[null, "1"]]])(
    "is requested again after the invalid reply %j",
    async (reply) => {
      const { server, node } = serving()
      const learning = outcomeOf(node.learnTime())
      server.latest.answer(reply)
      await nextTurn()
      expect(learning).toEqual([expect.stringContaining("sent an invalid reply")])
      void node.learnTime()
      expect([node.knowsTime, server.asked.length]).toEqual([false, 2])
      server.latest.answer(NOW)
      await nextTurn()
      expect(node.knowsTime).toBe(true)
    },
  )

  it("is requested again if no reply came within the longest timeout of the callers", async () => {
    const { server, node } = serving()
    node.waitedFor(20)
    node.waitedFor(10)
    const first = outcomeOf(node.learnTime())
    await pass(19)
    const second = outcomeOf(node.learnTime())
    expect([first, server.asked.length]).toEqual([[], 1])
    await pass(1)
    expect(first).toEqual([false])
    const third = outcomeOf(node.learnTime())
    expect(server.asked.length).toBe(2)
    // A caller that stops waiting for the first call does not end the second call.
    await pass(19)
    expect(second).toEqual([false])
    const fourth = outcomeOf(node.learnTime())
    expect(server.asked.length).toBe(2)
    server.latest.answer(NOW)
    await nextTurn()
    expect([third, fourth]).toEqual([[true], [true]])
  })

  it("is not requested while the client has no connection", async () => {
    const { server, node } = serving()
    server.isReady = () => false
    const learning = outcomeOf(node.learnTime())
    await nextTurn()
    expect([learning, server.asked]).toEqual([[UNCONNECTED], []])
  })

  it("is never requested if a clock is given, because scripts receive that clock's time", async () => {
    const { server, node } = serving({ timekeeping: { clock: { now: () => 5.9 }, isWide: true } })
    expect([node.knowsTime, node.timeOf(performance.now())]).toEqual([
      true,
      { nowMs: 5, untilMs: undefined, isWide: true },
    ])
    await succeed(server, node)
    expect(server.asked.map(({ what, args }) => [what, args])).toEqual([["evalsha", ["[5,0,1,0]"]]])
  })
})

/** Creates a call for one unit. */
function call(): TakeCall {
  const made = new TakeCall()
  made.add({ checks: [{ policy: POLICY, partition: "alice", cost: 1, shadow: false }], keys: [KEY] })
  return made
}

describe("a script call that takes no units", () => {
  it("also updates the server's time from its reply", async () => {
    const { server, node } = await knowing()
    const outcome = outcomeOf(peek(node))
    await nextTurn()
    // The server's clock was changed while the call was in flight. Its reply says that the call came too late.
    server.latest.answer([NOW_MS + 5_000])
    await nextTurn()
    expect([outcome.length, node.timeOf(performance.now()).untilMs]).toEqual([1, NOW_MS + 5_000])
  })
})

describe("a take call", () => {
  it("is sent with the script's digest, and updates the server's time from its reply", async () => {
    const { server, node } = serving()
    const sentAtMs = performance.now()
    const taking = node.take(call(), sentAtMs + 50)
    expect(server.asked).toMatchObject([
      { what: "evalsha", script: TAKE.sha, keys: [KEY], args: ["[-1,0,0,1,3,10,60000,0,1,1,1,1,1]"] },
    ])
    await pass(4)
    server.latest.answer([NOW_MS, `w:${NOW_MS}:0:1`])
    const arrival = { sentAtMs, answeredAtMs: sentAtMs + 4, isOvertaken: false }
    expect(await taking).toMatchObject({ nowMs: NOW_MS, arrival, answers: [{ granted: true }] })
    // The server read its time half a round trip ago.
    expect(node.timeOf(performance.now()).untilMs).toBe(NOW_MS + 2)
  })

  it("is sent again with the whole script only after a NOSCRIPT error", async () => {
    const { server, node } = await knowing()
    const taking = node.take(call(), performance.now() + 50)
    server.latest.fail("NOSCRIPT No matching script.")
    await nextTurn()
    const [byDigest, whole] = server.asked
    expect(whole).toMatchObject({ what: "eval", script: TAKE.text, keys: [KEY], args: byDigest?.args })
    server.latest.answer([NOW_MS, `w:${NOW_MS}:0:1`])
    expect(await taking).toMatchObject({ answers: [{ granted: true }] })
    const failing = outcomeOf(node.take(call(), performance.now() + 50))
    server.latest.fail("ERR no")
    await nextTurn()
    expect([failing, server.asked.length]).toEqual([["ERR no"], 3])
  })

  it("reports the send time of the whole script after a NOSCRIPT error, because nothing ran before", async () => {
    const { server, node } = await knowing()
    const sentAtMs = performance.now()
    const taking = node.take(call(), sentAtMs + 50)
    await pass(3)
    server.latest.fail("NOSCRIPT No matching script.")
    await nextTurn()
    server.latest.answer([NOW_MS, `w:${NOW_MS}:0:1`])
    expect((await taking).arrival.sentAtMs).toBe(sentAtMs + 3)
  })
})

describe("a reply that is read after the reply to a later call", () => {
  /** Sends two calls one after the other. Returns true if the first one was overtaken. */
  async function overtakenBy(
    later: (node: Node) => Promise<unknown>,
    reply: unknown,
    [firstMs, laterMs]: readonly [number, number] = [NOW_MS, NOW_MS],
  ): Promise<boolean> {
    const { server, node } = await knowing()
    const taking = node.take(call(), performance.now() + 50)
    const first = server.latest
    await pass(1)
    const changing = later(node)
    await nextTurn()
    server.latest.answer(typeof reply === "function" ? reply(laterMs) : reply)
    await changing
    first.answer([firstMs, `w:${NOW_MS}:0:1`])
    return (await taking).arrival.isOvertaken
  }
  const grant = (nowMs: number) => [nowMs, `w:${NOW_MS}:0:1`]

  it("is marked as overtaken if the later call is a take, a peek or a reset", async () => {
    expect(await overtakenBy((node) => node.take(call(), performance.now() + 50), grant)).toBe(true)
    expect(await overtakenBy((node) => peek(node, { withinMs: 20 }), grant)).toBe(true)
    expect(await overtakenBy((node) => node.forget([KEY], 20), 1)).toBe(true)
  })

  it("replies that are read in the order of their calls are overtaken only if the server's clock goes back", async () => {
    const { server, node } = await knowing()
    const isOvertaken = async (nowMs: number) => {
      const taking = node.take(call(), performance.now() + 50)
      server.latest.answer([nowMs, `w:${NOW_MS}:0:1`])
      const { arrival } = await taking
      await pass(1)
      return arrival.isOvertaken
    }
    expect(await isOvertaken(NOW_MS)).toBe(false)
    expect(await isOvertaken(NOW_MS)).toBe(false)
    // The clock went back, so it is unknown whether this reply is older or newer. The next reply is newer than this
    // one.
    expect(await isOvertaken(NOW_MS - 5)).toBe(true)
    expect(await isOvertaken(NOW_MS - 5)).toBe(false)
  })
})

describe("a single script call", () => {
  it("has a deadline in the server's time, which is requested first", async () => {
    const { server, node } = serving()
    const outcome = outcomeOf(peek(node, { withinMs: 20 }))
    await nextTurn()
    // Waiting for the time counts toward the timeout of the reply.
    await pass(10)
    expect(server.asked.map(({ what }) => what)).toEqual(["eval"])
    server.latest.answer(NOW)
    await nextTurn()
    expect(server.asked.slice(1)).toMatchObject([
      { what: "evalsha", script: PEEK.sha, keys: [KEY], args: [`[-1,${NOW_MS + 15},0,0]`] },
    ])
    server.latest.answer([NOW_MS])
    await nextTurn()
    expect([outcome, timers()]).toEqual([[[NOW_MS]], 0])
    await succeed(server, node)
    expect(server.asked).toHaveLength(3)
  })

  it("is never sent if the server does not return its time", async () => {
    const { server, node } = serving()
    const rejected = expect(peek(node, { withinMs: 20 })).rejects.toMatchObject({
      message: SILENT,
      outcome: "not-applied",
    })
    await pass(30)
    await rejected
    expect(server.asked.map(({ what }) => what)).toEqual(["eval"])
  })

  it("is never sent if the server returns its time after the deadline", async () => {
    const { server, node } = serving()
    node.waitedFor(50)
    const outcome = outcomeOf(peek(node, { withinMs: 10 }))
    await pass(20)
    server.latest.answer(NOW)
    await nextTurn()
    expect([node.knowsTime, outcome, server.asked.map(({ what }) => what)]).toEqual([
      true,
      [SILENT],
      ["eval"],
    ])
  })

  it("is rejected at its deadline if no reply has arrived", async () => {
    const { node } = await knowing()
    const outcome = outcomeOf(peek(node, { withinMs: 20 }))
    await pass(19)
    expect(outcome).toEqual([])
    await pass(1)
    expect([outcome, timers()]).toEqual([[SILENT], 0])
  })

  it("waits for the client's connection, and is never sent after the deadline", async () => {
    const { server, node } = await knowing()
    server.isReady = () => false
    const long = outcomeOf(peek(node, { withinMs: LOOK_AGAIN_MS + 10 }))
    const short = outcomeOf(peek(node, { withinMs: LOOK_AGAIN_MS - 2 }))
    await pass(LOOK_AGAIN_MS - 1)
    expect([server.asked, long, short]).toEqual([
      [],
      [],
      ["Redis did not respond in time, because its client has no connection."],
    ])
    server.isReady = () => true
    await pass(1)
    expect(server.asked).toHaveLength(1)
    server.latest.answer([NOW_MS])
    await nextTurn()
    expect([long, server.asked.length]).toEqual([[[NOW_MS]], 1])
  })

  it("is rejected after its deadline if it has no connection, even if the event loop stalled", async () => {
    const { server, node } = await knowing()
    server.isReady = () => false
    const rejected = expect(peek(node, { withinMs: LOOK_AGAIN_MS + 10 })).rejects.toMatchObject({
      message: UNCONNECTED,
      outcome: "not-applied",
    })
    const now = vi.spyOn(performance, "now").mockReturnValue(performance.now() + 60_000)
    await pass(LOOK_AGAIN_MS)
    now.mockRestore()
    await rejected
    expect(timers()).toBe(0)
  })

  it("is rejected with a separate message if the client never connected or was closed", async () => {
    const { server, node } = await knowing()
    server.isReady = () => false
    server.isOpen = () => false
    const outcome = outcomeOf(peek(node, { withinMs: 10 }))
    await pass(10)
    expect(outcome).toEqual([
      "Redis did not respond in time, because its client never connected or was closed.",
    ])
  })
})

describe("a change of the server's clock", () => {
  /**
   * Gets the server's time twice. By the server's clock, the second time is later by the given amount. Returns the
   * warnings.
   */
  async function warningsAfter(
    laterMs: number,
    timekeeping = BY_SERVER,
  ): Promise<readonly StoreWarningEvent[]> {
    const server = new AskedServer()
    const warnings: StoreWarningEvent[] = []
    const node = new Node(server, timekeeping, KEY, (event) => warnings.push(event))
    for (const nowMs of [NOW_MS, NOW_MS + laterMs]) {
      const learning = node.learnTime()
      server.latest.answer([Math.floor(nowMs / 1000), (nowMs % 1000) * 1000])
      await learning
    }
    return warnings
  }

  // Two replies can differ by 2 ms although the clock did not go back.
  it.each([
    ["an hour", -3_600_000, "3600 s"],
    ["a second", -1_002, "1 s"],
  ])("is reported if the clock certainly went back by %s", async (_, laterMs, back) => {
    expect(await warningsAfter(laterMs)).toMatchObject([
      {
        type: "warning",
        code: "SLUICE_STORE_CLOCK_BACK",
        subject: "Redis",
        message: expect.stringContaining(`The clock of Redis went back by ${back}.`),
      },
    ])
  })

  it.each([
    ["the clock may have gone back by less than a second", -1_001, BY_SERVER],
    ["the clock was set forward", 3_600_000, BY_SERVER],
    ["the app gives the store a clock", -3_600_000, { clock: { now: () => NOW_MS }, isWide: true }],
  ])("is not reported if %s", async (_, laterMs, timekeeping) => {
    expect(await warningsAfter(laterMs, timekeeping)).toEqual([])
  })
})

it("a node asks its server after a reply whether the server evicts keys, with a key in the same slot", async () => {
  const server = new AskedServer()
  const warnings: StoreWarningEvent[] = []
  const node = new Node(server, BY_SERVER, KEY, (event) => warnings.push(event))
  const taking = node.take(call(), performance.now() + 50)
  server.latest.answer([NOW_MS, `w:${NOW_MS}:0:1`])
  await taking
  expect(server.asked.slice(1)).toMatchObject([
    { what: "eval", script: EVICTIONS, keys: ["app:sl2:{7f}"], args: [] },
  ])
  server.latest.answer(["allkeys-lru", "0"])
  await nextTurn()
  expect(warnings).toMatchObject([{ code: "SLUICE_STORE_EVICTS", subject: "policy Redis" }])
})

describe("a replica that rejects a call", () => {
  it("makes the client reconnect only after all calls in flight have ended", async () => {
    const { server, node } = await knowing()
    await succeed(server, node)
    await fail(server, node, 1)
    const outcomes = [outcomeOf(peek(node)), outcomeOf(peek(node))]
    await nextTurn()
    const [first, second] = server.asked.slice(-2)
    first?.fail(READONLY)
    await nextTurn()
    expect([outcomes[0], node.reach, server.reconnected]).toEqual([
      [`Redis failed: ${READONLY}`],
      "a replica",
      [],
    ])
    second?.fail(READONLY)
    await nextTurn()
    expect(server.reconnected).toEqual([KEY])
  })

  it("does not make the client reconnect if the store has stopped the breaker", async () => {
    const { server, node } = await knowing()
    const outcome = outcomeOf(peek(node))
    await nextTurn()
    node.breaker.stop()
    server.latest.fail(READONLY)
    await nextTurn()
    expect([outcome.length, server.reconnected]).toEqual([1, []])
  })
})

describe("the process", () => {
  const background = { withinMs: 20, inBackground: true }
  it.each<{ what: string; isReady?: boolean; start: (node: Node) => Promise<unknown>; held: number }>([
    { what: "is kept alive by a call that a caller waits for", start: (node) => peek(node), held: 1 },
    {
      what: "is kept alive by a call that waits for a connection",
      isReady: false,
      start: (node) => peek(node),
      held: 2,
    },
    {
      what: "is not kept alive by a call in the background",
      start: (node) => peek(node, background),
      held: 0,
    },
    {
      what: "is not kept alive by a call in the background that waits for a connection",
      isReady: false,
      start: (node) => peek(node, background),
      held: 0,
    },
    {
      what: "is not kept alive by the wait for a server's time",
      start: (node) => node.learnTime(20),
      held: 0,
    },
  ])("$what", async ({ isReady = true, start, held }) => {
    const { server, node } = await knowing()
    server.isReady = () => isReady
    const outcome = outcomeOf(start(node))
    await nextTurn()
    expect([outcome, timers((timer) => timer.hasRef())]).toEqual([[], held])
    expect(timers()).toBeGreaterThan(0)
  })

  it("is not kept alive by a probe", async () => {
    const { server, node } = await knowing()
    await fail(server, node, 5)
    await pass(100)
    expect([server.latest.what, timers(), timers((timer) => timer.hasRef())]).toEqual(["eval", 1, 0])
    node.breaker.stop()
  })
})

it("the errors of a server contain its name, to identify it among several servers", async () => {
  const server = new AskedServer()
  server.nodeOf = () => "10.0.0.1:6379"
  const node = new Node(server, { clock: { now: () => NOW_MS }, isWide: true }, KEY)
  // Messages keep the name that the server had when it still served the key.
  server.nodeOf = () => "10.0.0.2:6379"
  const silent = outcomeOf(peek(node))
  await pass(20)
  const failing = outcomeOf(peek(node))
  await nextTurn()
  server.latest.fail("ERR no")
  await nextTurn()
  for (let i = 0; i < 3; i++) node.failed(node.silence())
  expect([silent, failing, node.unavailable.message]).toEqual([
    ["Redis at 10.0.0.1:6379 did not respond in time."],
    ["Redis at 10.0.0.1:6379 failed: ERR no"],
    `Redis at 10.0.0.1:6379 did not respond in time. ${KEEPS_TRYING}`,
  ])
  node.breaker.stop()
})

describe("a server that has failed five times in a row", () => {
  it("is not called, and calls are rejected immediately", async () => {
    const { server, node } = await knowing()
    await fail(server, node, 4)
    await succeed(server, node)
    await fail(server, node, 4)
    expect(node.breaker.isOpen).toBe(false)
    await fail(server, node, 1)
    expect(node.breaker.isOpen).toBe(true)
    // A call that was already in flight fails for another reason.
    node.failed(node.silence())
    const asked = server.asked.length
    await expect(peek(node)).rejects.toBe(node.unavailable)
    await expect(node.forget([KEY], 20)).rejects.toBe(node.unavailable)
    expect(server.asked.length).toBe(asked)
    expect(node.unavailable).toBeInstanceOf(StoreUnavailableError)
    expect([node.unavailable.message, node.unavailable.kind]).toEqual([
      `Redis failed: ERR no. ${KEEPS_TRYING}`,
      "unavailable",
    ])
    node.breaker.stop()
  })

  it.each([
    "NOPERM User app has no permissions to run the 'incrby' command",
    "NOAUTH Authentication required.",
    "OOM command not allowed when used memory > 'maxmemory'.",
    "MISCONF Redis is configured to save RDB snapshots",
    "NOREPLICAS Not enough good replicas to write.",
    "LOADING Redis is loading the dataset in memory",
    "ERR unknown command 'evalsha'",
    "CROSSSLOT Keys in request don't hash to the same slot",
  ])("is reported as unavailable with the original reason: %s", async (reason) => {
    const { server, node } = await knowing()
    for (let i = 0; i < 5; i++) {
      const outcome = outcomeOf(peek(node))
      await nextTurn()
      server.latest.fail(reason)
      await nextTurn()
      expect(outcome).toEqual([`Redis failed: ${reason}`])
    }
    const { message, cause, kind, outcome } = node.unavailable
    expect(message).toBe(`Redis failed: ${reason.replace(/\.$/, "")}. ${KEEPS_TRYING}`)
    expect([(cause as Error).message, kind, outcome]).toEqual([reason, "unavailable", "not-applied"])
    node.breaker.stop()
  })

  it("is reported as unavailable with the reason that its latest probe failed", async () => {
    const { server, node } = await probed()
    server.latest.fail("OOM command not allowed")
    await nextTurn()
    expect(node.unavailable.message).toBe(`Redis failed: OOM command not allowed. ${KEEPS_TRYING}`)
    server.isReady = () => false
    await pass(200)
    expect(node.unavailable.message).toBe(`${UNCONNECTED} ${KEEPS_TRYING}`)
    expect(node.unavailable).not.toHaveProperty("cause")
    node.breaker.stop()
  })

  it("calls in the background neither open nor close a server's circuit breaker", async () => {
    const { server, node } = await knowing()
    const background = { withinMs: 20, inBackground: true }
    await fail(server, node, 4)
    await fail(server, node, 5, background)
    expect(node.breaker.isOpen).toBe(false)
    await fail(server, node, 1)
    await succeed(server, node, background)
    expect(node.breaker.isOpen).toBe(true)
    node.breaker.stop()
  })

  /** Creates a server whose breaker is open and has just sent its first probe. */
  async function probed(isReady = true) {
    const made = await knowing()
    await fail(made.server, made.node, 5)
    made.server.asked.length = 0
    made.server.isReady = () => isReady
    await pass(100)
    return made
  }

  it("is probed for its time, and the breaker closes when the server returns it", async () => {
    const { server, node } = await probed()
    expect(server.asked).toMatchObject([{ what: "eval", keys: ["app:sl2:{7f}"] }])
    expect(node.breaker.isOpen).toBe(true)
    await pass(19)
    server.latest.answer(NOW)
    await nextTurn()
    expect(node.breaker.isOpen).toBe(false)
  })

  it("keeps its breaker open if it replies to the probe after the longest timeout", async () => {
    const { server, node } = await probed()
    await pass(20)
    server.latest.answer(NOW)
    await nextTurn()
    expect([node.breaker.isOpen, server.reconnected]).toEqual([true, []])
    node.breaker.stop()
  })

  it("keeps its breaker open if it is a replica, and makes the client reconnect", async () => {
    const { server, node } = await probed()
    server.latest.fail(READONLY)
    await nextTurn()
    expect([node.breaker.isOpen, server.reconnected]).toEqual([true, [KEY]])
    node.breaker.stop()
  })

  it("is probed within a second after its client is connected, not before", async () => {
    const { server, node } = await probed(false)
    await pass(5_000)
    expect([node.breaker.isOpen, server.asked]).toEqual([true, []])
    server.isReady = () => true
    for (let ms = 0; ms < 1_000 && server.asked.length === 0; ms += 10) await pass(10)
    server.latest.answer(NOW)
    await nextTurn()
    expect(node.breaker.isOpen).toBe(false)
    // The number of timers would include those of other tests, whose clients may still connect.
    await pass(2_000)
    expect(server.asked).toHaveLength(1)
  })
})

it("a call has not run if a replica or a migrating slot rejected it", () => {
  const { server, node } = serving()
  const told = [
    "READONLY You can't write",
    "MASTERDOWN Link with MASTER is down",
    "TRYAGAIN Multiple keys",
    "ERR no",
  ].map((text) => {
    const error = new Error(text)
    return [node.isReplica(error), node.hasNotRun(error)]
  })
  expect(told).toEqual([
    [true, true],
    [true, true],
    [false, true],
    [false, false],
  ])
  node.reconnect()
  expect(server.reconnected).toEqual([KEY])
})

it("a server is called outside the request's async context, which a new connection would retain", async () => {
  const { server, node } = await knowing()
  const request = new AsyncLocalStorage<string>()
  const contexts: unknown[] = []
  const del = server.del.bind(server)
  server.del = (keys) => {
    contexts.push(request.getStore())
    return del(keys)
  }
  let isReady = false
  server.isReady = () => isReady
  const forgotten = request.run("alice's", () => node.forget([KEY], 20 + LOOK_AGAIN_MS))
  isReady = true
  await pass(LOOK_AGAIN_MS)
  server.latest.answer(1)
  await forgotten
  expect(contexts).toEqual([undefined])
})
