import { setImmediate as nextTurn } from "node:timers/promises"
import { ClosedError, StoreUnavailableError } from "@sluice/core"
import type { MaybePromise } from "@sluice/core/kit"
import {
  type Check,
  foreignStore,
  type Policy,
  peekStore,
  type Refund,
  type StoreEvent,
  type StoreResult,
} from "@sluice/core/stores"
import { manualClock } from "@sluice/core/testing"
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from "vitest"
import { takeEach } from "../../core/src/stores/testing/take-each.ts"
import type { RedisCommands } from "./commands.ts"
import { noCounter } from "./failure.ts"
import { RedisStore, type RedisStoreParts } from "./redis-store.ts"
import { PEEK, REFUND, TAKE } from "./scripts.ts"
import { FIRST_HIT as POLICY } from "./testing/first-hit.ts"

const TIMEOUT_MS = 20_000
const NOW_MS = Date.UTC(2024, 0, 1)
const OTHER: Policy = { ...POLICY, counter: "counter1" }
const SCRIPTS = new Map([
  [TAKE.sha, "take"],
  [PEEK.sha, "peek"],
  [REFUND.sha, "refund"],
])

function check(partition = "ann", cost = 1, policy = POLICY): Check {
  return { policy, partition, cost, shadow: false }
}

/** Returns the state of a counter whose window began a second ago, as a script returns it. */
function holding(current: number): string {
  return `w:${NOW_MS - 1_000}:0:${current}`
}

/** Returns a refund of the first units that were taken from a counter. */
function refund({ policy, partition }: Check, units = 2): Refund {
  return { policy, partition, units, after: { startMs: NOW_MS - 1_000, current: units, previous: 0 } }
}

/** A call to Redis that waits for a reply from the test. */
interface Call {
  readonly what: string
  readonly keys: readonly string[]
  readonly args: readonly string[]
  /** Responds with these states or other values. */
  answer(...told: readonly unknown[]): void
  /** Responds as `answer` does, at another time of the server. */
  answerAt(nowMs: number, ...told: readonly unknown[]): void
  fail(error: Error): void
}

const opened: RedisStore[] = []
afterEach(() => {
  for (const store of opened.splice(0)) store.close()
})

/**
 * Creates a store on a fake Redis. The test itself replies to each call, except calls for the server's time, which
 * get a reply automatically.
 */
function open(more: Partial<RedisStoreParts> & { readonly isCluster?: boolean } = {}) {
  const { isCluster = false, ...parts } = more
  const calls: Call[] = []
  const send = (what: string, keys: readonly string[], args: readonly string[]) => {
    return new Promise<unknown>((resolve, fail) => {
      const answerAt = (...told: readonly unknown[]) => resolve(told)
      const answer = (...told: readonly unknown[]) => answerAt(NOW_MS, ...told)
      calls.push({ what, keys, args, fail, answer, answerAt })
    })
  }
  const commands: RedisCommands = {
    isCluster,
    isReady: () => true,
    isOpen: () => true,
    evalsha: (sha, keys, args) => send(SCRIPTS.get(sha) ?? sha, keys, args),
    eval: () => Promise.resolve([`${NOW_MS / 1000}`, "0"]),
    del: (keys) => send("delete", keys, []),
    nodeOf: (key) => (isCluster ? slotOf(key) : ""),
    reconnect: () => undefined,
  }
  const store = new RedisStore({
    ...{ commands, prefix: "", denyCacheMs: 60_000, timeoutMs: TIMEOUT_MS, clock: undefined },
    ...parts,
  })
  opened.push(store)
  /** Returns the calls that have arrived since the previous call of this function. */
  const arriving = async () => {
    await nextTurn()
    return calls.splice(0)
  }
  /** Returns the only new call. */
  const next = async (): Promise<Call> => {
    const some = await arriving()
    expect(some.map(({ what }) => what)).toHaveLength(1)
    return some[0] as Call
  }
  /** Takes a check that Redis refuses. */
  const refuse = async (one = check()) => {
    const taking = store.take([one])
    ;(await next()).answer(holding(10), 1, 0)
    expect(await taking).toMatchObject({ granted: false })
  }
  /** Makes the server of a check fail until its circuit breaker opens. */
  const breakServer = async () => {
    while (store.status?.openBreakers === 0) {
      const resetting = store.reset([check()])
      ;(await next()).fail(new Error("gone"))
      await expect(resetting).rejects.toThrow("gone")
    }
  }
  return { store, arriving, next, refuse, breakServer }
}

function slotOf(key: string): string {
  return /\{.*\}/.exec(key)?.[0] ?? ""
}

function takenOf({ granted, checks }: StoreResult): unknown {
  return [granted, ...checks.map((one) => one && [one.state.current, one.taken])]
}

describe("a Redis store", () => {
  it("reports that it is shared and that it enforces deadlines itself", () => {
    const { store } = open()
    expect([store.isShared, foreignStore(store)]).toEqual([true, store])
  })

  it("stores full window starts only if a clock is given", async () => {
    const clock = manualClock(NOW_MS)
    for (const [parts, isWide] of [
      [{}, 0],
      [{ clock }, 1],
      [{ clock, isWide: false }, 0],
    ] as const) {
      const { store, next } = open(parts)
      const taking = store.take([check()])
      const call = await next()
      expect(JSON.parse(call.args[0] as string)[2]).toBe(isWide)
      call.answer(holding(1))
      await taking
    }
  })

  it("grants a request without checks immediately, without calling Redis", async () => {
    const clock = manualClock(NOW_MS + 1.5)
    const granted = { nowMs: NOW_MS + 1, granted: true, checks: [] }
    const { store, arriving } = open({ clock })
    expect(store.take([])).toEqual(granted)
    expect(await peekStore(store, [])).toEqual(granted)
    expect(await arriving()).toEqual([])
    const earliestMs = Date.now()
    const answer = await open().store.take([])
    expect(answer).toEqual({ nowMs: expect.any(Number), granted: true, checks: [] })
    expect(answer.nowMs).toBeGreaterThanOrEqual(earliestMs)
    expect(answer.nowMs).toBeLessThanOrEqual(Date.now())
  })

  it.each([
    [
      "an unknown algorithm",
      check("bob", 1, { ...POLICY, algorithm: "none" as Policy["algorithm"] }),
      "The Redis store does not support the algorithm none.",
    ],
    ["a partition that is not a string", check(7 as never), "The partition must be a string; got 7."],
  ])(
    "rejects all requests of a take if one has %s, and leaves no unhandled rejection",
    async (_what, wrong, message) => {
      const { store, next } = open()
      const taking = takeEach(store, [[check("ann")], [wrong]])
      const rejected = expect(taking).rejects.toThrow(message)
      const call = await next()
      expect(call.keys).toHaveLength(1)
      call.fail(new Error("gone"))
      await rejected
    },
  )
})

describe("a reply after the timeout", () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] }))
  afterEach(() => void vi.useRealTimers())

  /** Returns a call to which Redis has not replied in time. */
  async function late({ store, next }: ReturnType<typeof open>): Promise<Call> {
    const taking = store.take([check("ann", 2)])
    const call = await next()
    vi.advanceTimersByTime(TIMEOUT_MS)
    await expect(taking).rejects.toMatchObject({ kind: "timeout" })
    return call
  }

  it("is cached if it is a refusal", async () => {
    const opened = open()
    const { store, arriving } = opened
    ;(await late(opened)).answer(holding(10), 1, 0)
    expect(await arriving()).toEqual([])
    expect(store.take([check("ann", 2)])).toMatchObject({ granted: false, isRemembered: true })
  })

  it("is refunded if it is a grant", async () => {
    const opened = open()
    const call = await late(opened)
    call.answer(holding(5))
    const returned = await opened.next()
    expect([returned.what, returned.keys]).toEqual(["refund", call.keys])
    returned.answer(1)
  })

  it("is refunded if it is a grant, even while the circuit breaker is open", async () => {
    const opened = open()
    const call = await late(opened)
    await opened.breakServer()
    call.answer(holding(5))
    const returned = await opened.next()
    expect([returned.what, opened.store.status?.openBreakers]).toEqual(["refund", 1])
    returned.answer(1)
  })

  it("is followed by a `refund-lost` event if the refund fails", async () => {
    const opened = open()
    const lost: StoreEvent[] = []
    const stopped: StoreEvent[] = []
    opened.store.subscribe((event) => lost.push(event))
    opened.store.subscribe((event) => stopped.push(event))()
    ;(await late(opened)).answer(holding(5))
    ;(await opened.next()).fail(new Error("gone"))
    await nextTurn()
    expect(lost).toMatchObject([
      { type: "refund-lost", error: { message: "Redis failed: gone", outcome: "unknown" } },
    ])
    expect(stopped).toEqual([])
  })

  it("is ignored if the store is closed", async () => {
    const opened = open()
    const call = await late(opened)
    opened.store.close()
    call.answer(holding(5))
    expect(await opened.arriving()).toEqual([])
  })

  it("is not followed by a `refund-lost` event if the store is closed during the refund", async () => {
    const opened = open()
    const lost: StoreEvent[] = []
    opened.store.subscribe((event) => lost.push(event))
    ;(await late(opened)).answer(holding(5))
    const returned = await opened.next()
    opened.store.close()
    returned.fail(new Error("gone"))
    await nextTurn()
    expect(lost).toEqual([])
  })
})

describe("a client that was refused by Redis", () => {
  it("is refused again from the cache, without a call to Redis", async () => {
    const { store, refuse, arriving } = open()
    await refuse()
    const state = { startMs: NOW_MS - 1_000, current: 10, previous: 0 }
    const refused = { granted: false, checks: [{ state, taken: 0 }], isRemembered: true }
    expect(store.take([check()])).toMatchObject(refused)
    expect(await arriving()).toEqual([])
  })

  it("is refused from the cache until the refusal expires on the given clock", async () => {
    const clock = manualClock(NOW_MS)
    const { store, refuse, next } = open({ clock, denyCacheMs: 10_000 })
    await refuse()
    clock.advance(9_999)
    expect(store.take([check()])).toMatchObject({ nowMs: NOW_MS + 9_999, granted: false })
    clock.advance(1)
    const taking = store.take([check()])
    ;(await next()).answer(holding(1))
    expect(takenOf(await taking)).toEqual([true, [1, 1]])
  })

  it.each([
    ["a reset", (store: RedisStore) => store.reset([check()]), "delete"],
    ["a refund", (store: RedisStore) => store.refund([refund(check())]), "refund"],
  ] as const)(
    "is checked in Redis again after %s, even if the client was refused in the meantime",
    async (_, change, what) => {
      const { store, refuse, next, arriving } = open()
      await refuse()
      const changing = change(store)
      const call = await next()
      expect(call.what).toBe(what)
      // The change may or may not have been applied by now.
      await refuse()
      expect(store.take([check()])).toMatchObject({ isRemembered: true })
      call.answer(1)
      await changing
      const taking = store.take([check()])
      ;(await next()).answer(holding(1))
      expect(takenOf(await taking)).toEqual([true, [1, 1]])
      expect(await arriving()).toEqual([])
    },
  )

  /** Starts two calls, of three units and of two units. Redis runs them in this order. */
  async function inFlight() {
    const opened = open()
    const three = opened.store.take([check("ann", 3)])
    const first = await opened.next()
    const two = opened.store.take([check("ann", 2)])
    const second = await opened.next()
    return { ...opened, three, first, two, second }
  }

  it("is checked in Redis again if the reply to a later grant was read before the refusal", async () => {
    const { store, next, three, first, two, second } = await inFlight()
    second.answer(holding(10))
    await two
    first.answer(holding(8), 1, 0)
    await three
    const taking = store.take([check("ann", 3)])
    ;(await next()).answer(holding(10), 1, 0)
    expect(takenOf(await taking)).toEqual([false, [10, 0]])
  })

  it("is checked in Redis again after a later call failed, because that call may have been counted", async () => {
    const { store, next, refuse } = open()
    await refuse(check("ann", 3))
    const taking = store.take([check("ann", 3), check("ann", 1, OTHER)])
    ;(await next()).fail(new Error("The connection is lost."))
    await expect(taking).rejects.toThrow("The connection is lost.")
    const again = store.take([check("ann", 3)])
    ;(await next()).answer(holding(10), 1, 0)
    expect(takenOf(await again)).toEqual([false, [10, 0]])
  })

  it("is checked in Redis again after a failed reset, because the reset may have been applied", async () => {
    const { store, refuse, next } = open()
    const resetting = store.reset([check()])
    const call = await next()
    await refuse()
    call.fail(new Error("The connection is lost."))
    await expect(resetting).rejects.toThrow("Redis failed: The connection is lost.")
    await refuse()
  })
})

describe("a peek", () => {
  it.each([
    [
      "one counter with enough units for either check, but not for both",
      [check("ann", 3), check("ann", 3)],
      false,
    ],
    ["one counter with enough units for both checks", [check("ann", 2), check("ann", 3)], true],
    ["two counters of one client", [check("ann", 5), check("ann", 5, OTHER)], true],
    ["one counter of two clients", [check("ann", 5), check("bob", 5)], true],
    ["two counters, one of them without enough units", [check("ann", 5), check("bob", 6)], false],
  ] as const)("reports whether two checks would be granted together, for %s", async (_, checks, granted) => {
    const { store, next } = open()
    const peeking = peekStore(store, checks)
    const call = await next()
    expect(call.what).toBe("peek")
    call.answer(holding(5), holding(5))
    const state = { startMs: NOW_MS - 1_000, current: 5, previous: 0 }
    const counted = { state, taken: 0 }
    expect(await peeking).toEqual({ nowMs: NOW_MS, granted, checks: [counted, counted] })
  })

  it("reads up to 64 counters per call", async () => {
    const { store, arriving } = open()
    const checks = Array.from({ length: 129 }, (_, i) => check(`client${i}`))
    for (const [count, lengths] of [
      [64, [64]],
      [129, [64, 64, 1]],
    ] as const) {
      const peeking = peekStore(store, checks.slice(0, count))
      const calls = await arriving()
      expect(calls.map(({ keys }) => keys.length)).toEqual(lengths)
      calls.forEach(({ keys, answer }, nth) => {
        answer(...keys.map((_, i) => holding(64 * nth + i)))
      })
      const { checks: counted } = await peeking
      expect(counted.map((one) => one?.state.current)).toEqual([...counted.keys()])
    }
  })

  it("with an invalid counter is rejected with an error that names the counter but not the client", async () => {
    const { store, next } = open()
    const policy = { ...POLICY, counter: "Zk3hX0pQ9vLm2TcY" }
    const peeking = peekStore(store, [check("ann", 1, policy), check("bob", 1, policy)])
    const call = await next()
    call.answer(holding(5), 0)
    const key = call.keys[1] as string
    expect(key.endsWith("bob")).toBe(true)
    const { message } = noCounter(`${key.slice(0, -"bob".length)}…`)
    await expect(peeking).rejects.toThrow(StoreUnavailableError)
    await expect(peeking).rejects.toMatchObject({ kind: "invalid-answer", message })
  })
})

describe("refunds", () => {
  it("share a call to Redis if they are requested in one event-loop tick", async () => {
    const { store, next } = open()
    const giving = [store.refund([refund(check("ann"))]), store.refund([refund(check("bob"))])]
    const call = await next()
    expect(call.keys.map((key) => key.slice(8))).toEqual(["counter0ann", "counter0bob"])
    call.answer(1)
    await Promise.all(giving)
  })

  it("are sent in one call per slot in a cluster", async () => {
    const { store, arriving } = open({ isCluster: true })
    const giving = store.refund([refund(check("ann")), refund(check("bob")), refund(check("ann", 1, OTHER))])
    const calls = await arriving()
    expect(calls.map(({ keys }) => keys.map((key) => key.slice(8)))).toEqual([
      ["counter0ann", "counter1ann"],
      ["counter0bob"],
    ])
    for (const call of calls) call.answer(1)
    await giving
  })
})

describe("a call that waits longer than any decision", () => {
  it.each<[what: string, call: (store: RedisStore, withinMs: number) => MaybePromise<unknown>]>([
    ["a peek", (store, withinMs) => peekStore(store, [check()], withinMs)],
    ["a refund", (store, withinMs) => store.refund([refund(check())], withinMs)],
  ])("does not affect the circuit breaker, which only protects decisions: %s", async (_, call) => {
    const { store, next } = open()
    const taking = store.take([check()], 50)
    ;(await next()).answer(holding(1))
    await taking
    for (let i = 0; i < 6; i++) {
      const failing = expect(call(store, 1_000)).rejects.toThrow("gone")
      ;(await next()).fail(new Error("gone"))
      await failing
    }
    expect(store.status?.openBreakers).toBe(0)
    for (let i = 0; i < 5; i++) {
      const failing = expect(call(store, 50)).rejects.toThrow("gone")
      ;(await next()).fail(new Error("gone"))
      await failing
    }
    expect(store.status?.openBreakers).toBe(1)
  })
})

describe("a store on a cluster", () => {
  it("sends the checks of one slot in one call, over the fast path if possible", async () => {
    const policy: Policy = { ...POLICY, align: "epoch" }
    const { store, next } = open({ isCluster: true })
    const taking = store.take([check("ann", 2, policy)])
    const call = await next()
    expect(call.args).toEqual([expect.stringMatching(/^2000>YP000:00[0-o]{8}000201$/)])
    call.answer(holding(2))
    expect(takenOf(await taking)).toEqual([true, [2, 2]])
    const both = store.take([check("ann"), check("ann", 1, OTHER)])
    ;(await next()).answer(holding(3), holding(1))
    expect(takenOf(await both)).toEqual([true, [3, 1], [1, 1]])
  })

  it("applies one timeout to all slots together, and refunds earlier slots when it passes", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] })
    try {
      const { store, next, arriving } = open({ isCluster: true })
      const outcome: unknown[] = []
      vi.advanceTimersByTime(1_000)
      Promise.resolve(store.take([check("ann"), check("bob")], 20)).catch((error: StoreUnavailableError) => {
        outcome.push(error.kind)
      })
      const first = await next()
      vi.advanceTimersByTime(15)
      first.answer(holding(1))
      await next()
      vi.advanceTimersByTime(4)
      await arriving()
      expect(outcome).toEqual([])
      vi.advanceTimersByTime(1)
      const [returned] = await arriving()
      expect([outcome, returned?.what, returned?.keys]).toEqual([["timeout"], "refund", first.keys])
    } finally {
      vi.useRealTimers()
    }
  })

  it("still calls the slots before a slot with a cached refusal, because the first refusal decides", async () => {
    const { store, next, arriving } = open({ isCluster: true })
    const refused = store.take([check("bob")])
    ;(await next()).answer(holding(10), 1, 0)
    await refused
    const both = () => store.take([check("ann", 2), check("bob")])
    const taking = both()
    ;(await next()).answer(holding(2))
    const answer = await taking
    expect([answer.granted, answer.isRemembered]).toEqual([false, undefined])
    expect(takenOf(await taking)).toEqual([false, undefined, [10, 0]])
    const returned = await next()
    expect(returned.what).toBe("refund")
    returned.answer(1)
    const again = both()
    ;(await next()).answer(holding(9), 1, 0)
    expect(takenOf(await again)).toEqual([false, [9, 0], undefined])
    // The cache now contains the refusal of the first slot, so no slot is called.
    const remembered = await both()
    expect([remembered.isRemembered, takenOf(remembered)]).toEqual([true, [false, [9, 0], undefined]])
    expect(await arriving()).toEqual([])
  })

  it.each([
    ["behind", [59_000, 59_001]],
    ["ahead", [59_001, 59_000]],
  ])(
    "peeks at all slots concurrently, and returns the latest time if the first slot's clock is %s",
    async (_, times) => {
      const { store, arriving } = open({ isCluster: true })
      // The windows of both counters end at the later of these times.
      const started = `w:${NOW_MS - 999}:0:`
      const peeking = peekStore(store, [check("ann", 5), check("bob", 5)])
      const calls = await arriving()
      calls.forEach((call, i) => {
        call.answerAt(NOW_MS + (times[i] as number), `${started}6`)
      })
      const empty = { startMs: NOW_MS + 59_001, current: 0, previous: 0 }
      const counted = { state: empty, taken: 0 }
      expect(await peeking).toEqual({ nowMs: NOW_MS + 59_001, granted: true, checks: [counted, counted] })
    },
  )
})

it("a warning about a server reaches every listener, even if another listener throws", async () => {
  const warned = vi.spyOn(process, "emitWarning").mockImplementation(() => undefined)
  onTestFinished(() => warned.mockRestore())
  const { store, next } = open()
  const events: StoreEvent[] = []
  store.subscribe(() => {
    throw new Error("oops")
  })
  store.subscribe((event) => events.push(event))
  for (const laterMs of [0, -3_600_000]) {
    const taking = store.take([check()])
    ;(await next()).answerAt(NOW_MS + laterMs, holding(1))
    await taking
  }
  expect(events).toMatchObject([{ type: "warning", code: "SLUICE_STORE_CLOCK_BACK", subject: "Redis" }])
  const said = warned.mock.calls.map(([message]) => message)
  expect(said).toEqual([expect.stringContaining("A listener of the Redis store failed")])
})

describe("a closed store", () => {
  const closed = "The Redis store has been closed."

  it("rejects every call, even for cached refusals and requests without checks", async () => {
    const { store, refuse, arriving } = open()
    await refuse()
    store.close()
    store.close()
    for (const checks of [[check()], [check("bob")], []]) {
      expect(() => store.take(checks)).toThrow(ClosedError)
      expect(() => store.take(checks)).toThrow(closed)
      await expect(peekStore(store, checks)).rejects.toThrow(ClosedError)
    }
    await expect(store.refund([refund(check())])).rejects.toThrow(ClosedError)
    await expect(store.reset([check()])).rejects.toThrow(ClosedError)
    expect(await arriving()).toEqual([])
  })
})
