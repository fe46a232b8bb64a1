import { setImmediate as nextTurn } from "node:timers/promises"
import { afterEach, describe, expect, it, vi } from "vitest"
import { manualClock } from "../clock.ts"
import { memoryStore } from "../stores/memory/memory-store.ts"
import type { Store } from "../stores/store.ts"
import { createGuard } from "./guard.ts"
import type { DecisionCall } from "./limiter.ts"
import type { LimiterOptions } from "./options.ts"
import type { RequestFacts } from "./request.ts"
import { createLimiter } from "./request-limiter.ts"

const ALICE: RequestFacts = { remoteAddress: "192.0.2.1" }
const TICK_MS = 8

afterEach(() => {
  vi.restoreAllMocks()
})

/** A monotonic clock of which each reading is some ms later than the one before. */
function tickingClock() {
  let nowMs = 0
  return vi.spyOn(performance, "now").mockImplementation(() => {
    nowMs += TICK_MS
    return nowMs
  })
}

/** The memory store, whose answers come when `answer` is called. */
function laterStore() {
  const inner = memoryStore()
  let answer: () => void = () => undefined
  const answered = new Promise<void>((resolve) => {
    answer = resolve
  })
  const store: Store = {
    keepsDeadline: true,
    take: (requests) => answered.then(() => inner.take(requests)),
    peek: (requests) => answered.then(() => inner.peek(requests)),
    giveBack: (refunds) => inner.giveBack(refunds),
    reset: (keys) => inner.reset(keys),
    close: () => inner.close(),
  }
  return { store, answer }
}

function setUp(options: Partial<LimiterOptions<RequestFacts>> = {}) {
  const clock = manualClock()
  const limiter = createLimiter({ limit: 100, window: "1 minute", clock, ...options })
  const calls: DecisionCall[] = []
  limiter.on("decision", (_decision, _request, call) => void calls.push(call))
  return { clock, limiter, calls }
}

describe("the call that a decision answers", () => {
  it("is told by its name, with what adapters call", async () => {
    const { limiter, calls } = setUp()
    await limiter.decide(ALICE)
    await limiter.enforce(ALICE)
    await limiter.takeUpTo(ALICE, 3)
    await limiter.acquire(ALICE)
    await limiter.peek(ALICE)
    const guard = createGuard({ limiter })
    await nextTurn()
    await guard.check(ALICE, {})
    expect(calls.map(({ operation }) => operation)).toEqual([
      "decide",
      "decide",
      "takeUpTo",
      "acquire",
      "decide",
    ])
  })

  it("is a hold where a rule has requests wait", async () => {
    const { limiter, calls } = setUp({ throttle: { kind: "queue" } })
    const guard = createGuard({ limiter })
    await nextTurn()
    await guard.check(ALICE, {})
    expect(calls.map(({ operation }) => operation)).toEqual(["hold"])
  })

  it("took as long as a monotonic clock says, whatever the clock of the limiter does", async () => {
    tickingClock()
    const { clock, limiter, calls } = setUp()
    await limiter.decide(ALICE)
    clock.advance(60_000)
    await limiter.takeUpTo(ALICE, 3)
    await limiter.acquire(ALICE)
    expect(calls.map(({ durationMs }) => durationMs)).toEqual([TICK_MS, TICK_MS, TICK_MS])
  })

  it("took until the store answered", async () => {
    let nowMs = 1_000
    vi.spyOn(performance, "now").mockImplementation(() => nowMs)
    const { store, answer } = laterStore()
    const { limiter, calls } = setUp({ store })
    const decision = limiter.decide(ALICE)
    nowMs += 30
    answer()
    await decision
    expect(calls).toEqual([{ operation: "decide", durationMs: 30 }])
  })

  it("took what was waited for the first rules", async () => {
    let nowMs = 1_000
    vi.spyOn(performance, "now").mockImplementation(() => nowMs)
    let load: () => void = () => undefined
    const loaded = new Promise<void>((resolve) => {
      load = resolve
    })
    const rules = [{ name: "all", field: "service", limit: 5, window: "1 minute" }] as const
    const limiter = createLimiter({
      clock: manualClock(),
      rules: { load: () => loaded.then(() => ({ rules, problems: [] })) },
    })
    const calls: DecisionCall[] = []
    limiter.on("decision", (_decision, _request, call) => void calls.push(call))
    const decision = limiter.decide(ALICE)
    nowMs += 700
    load()
    expect((await decision).policy).toBe("all")
    expect(calls).toEqual([{ operation: "decide", durationMs: 700 }])
    await limiter.close()
  })

  it("reads no clock, and tells nothing, while nobody listens", async () => {
    const clock = tickingClock()
    const limiter = createLimiter({ limit: 100, window: "1 minute", clock: manualClock() })
    const listener = () => undefined
    limiter.on("decision", listener)
    limiter.off("decision", listener)
    await limiter.decide(ALICE)
    await limiter.takeUpTo(ALICE, 3)
    await limiter.acquire(ALICE)
    expect(clock).not.toHaveBeenCalled()
  })
})
