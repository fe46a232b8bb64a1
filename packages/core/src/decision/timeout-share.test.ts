import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { StoreUnavailableError } from "../ground/errors.ts"
import { memoryStore } from "../stores/memory/memory-store.ts"
import { methodsOf } from "../stores/testing/methods-of.ts"
import { TimeoutShare, type Timeouts } from "./timeout-share.ts"

const TIMEOUT_MS = 50
const timeout = new StoreUnavailableError("late", { kind: "timeout" })
const unavailable = new StoreUnavailableError("not asked", { kind: "unavailable" })
const broken = new StoreUnavailableError("reset", { kind: "error" })

beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] }))
afterEach(() => void vi.useRealTimers())

/** Creates a TimeoutShare whose decisions the test counts, for a store with these reply times. */
function setUp(roundTripsMs?: readonly number[]) {
  const counts = { answers: 0, nowMs: 1_000 }
  const reports: Timeouts[] = []
  const store = {
    ...methodsOf(memoryStore()),
    ...(roundTripsMs && { status: { recentRoundTripsMs: roundTripsMs } }),
  }
  const share = new TimeoutShare(
    store,
    TIMEOUT_MS,
    () => counts.answers,
    (timeouts) => reports.push(timeouts),
  )
  const fail = (error: unknown, times: number) => {
    for (let i = 0; i < times; i++) share.failed(error, counts.nowMs)
  }
  const pass = (ms: number) => {
    counts.nowMs += ms
    share.passed(counts.nowMs)
  }
  return { counts, reports, share, fail, pass }
}

describe("timeouts of a store whose replies take longer than the timeout", () => {
  it("are reported only once, as soon as there are 20 of them", () => {
    const { reports, fail, share } = setUp([80, 90, 81, 84, 82])
    fail(timeout, 19)
    expect(reports).toEqual([])
    fail(timeout, 200)
    expect(reports).toEqual([{ decisions: 20, late: 20, roundTrip: { medianMs: 82, most95Ms: 90 } }])
    expect(share.isCounting).toBe(false)
  })

  it("are reported as soon as they exceed 5 % of the minute's decisions", () => {
    const { counts, reports, fail } = setUp([80, 80, 80])
    fail(timeout, 1)
    counts.answers += 380
    fail(timeout, 19)
    // 20 of 400.
    expect(reports).toEqual([])
    fail(timeout, 1)
    expect(reports).toMatchObject([{ decisions: 401, late: 21 }])
  })

  it("include decisions without a store call if timeouts, not errors, opened the circuit breaker", () => {
    const opened = setUp([80, 80, 80])
    opened.fail(timeout, 5)
    opened.fail(unavailable, 15)
    expect(opened.reports).toMatchObject([{ decisions: 20, late: 20 }])
    const failing = setUp([80, 80, 80])
    failing.fail(broken, 5)
    failing.fail(unavailable, 100)
    failing.fail(new Error("no error of a store"), 100)
    expect([failing.reports, failing.share.isCounting]).toEqual([[], false])
  })

  it("are reported after one second if all of them occurred before the first reply", () => {
    const roundTripsMs: number[] = []
    const { reports, fail } = setUp(roundTripsMs)
    fail(timeout, 300)
    expect([reports.length, vi.getTimerCount()]).toEqual([0, 1])
    roundTripsMs.push(80, 80, 80)
    vi.advanceTimersByTime(1_000)
    expect(reports).toMatchObject([{ decisions: 300, late: 300, roundTrip: { medianMs: 80 } }])
    expect(vi.getTimerCount()).toBe(0)
  })

  it("cause the reply times to be read at most once a second, even during an outage", () => {
    const { counts, reports } = setUp()
    let reads = 0
    const replies: number[] = []
    const store = Object.assign(methodsOf(memoryStore()), {
      get status() {
        reads++
        return { recentRoundTripsMs: replies }
      },
    })
    const watched = new TimeoutShare(
      store,
      TIMEOUT_MS,
      () => 0,
      (timeouts) => reports.push(timeouts),
    )
    const fail = () => {
      for (let nth = 0; nth < 1_000; nth++) watched.failed(timeout, counts.nowMs)
    }
    fail()
    const once = reads
    expect(once).toBeLessThanOrEqual(2)
    counts.nowMs += 999
    fail()
    expect(reads).toBe(once)
    replies.push(80, 80, 80)
    counts.nowMs++
    fail()
    expect([reports.length, watched.isCounting]).toEqual([1, false])
  })

  it("are not reported if only the first two replies were slow", () => {
    const roundTripsMs = [80, 80]
    const { reports, fail } = setUp(roundTripsMs)
    fail(timeout, 300)
    roundTripsMs.push(1, 1)
    vi.advanceTimersByTime(1_000)
    expect(reports).toEqual([])
  })
})

describe("timeouts of a store whose replies are usually quick", () => {
  const SLOW = [1, 2, 1, 400, 60, 1, 1]

  /** Makes the store miss the timeout for some decisions, and then respond to other decisions in time. */
  function stall(made: ReturnType<typeof setUp>, { late = 20, ms = 300, answers = 100 } = {}) {
    made.fail(timeout, 1)
    made.counts.nowMs += ms
    made.fail(timeout, late - 1)
    made.counts.answers += answers
    made.pass(0)
  }

  it("are reported at the end of the minute if replies arrived late for over 5 % of its decisions", () => {
    const made = setUp(SLOW)
    for (let nth = 0; nth < 3; nth++) stall(made)
    made.pass(59_000)
    expect(made.reports).toEqual([])
    made.pass(1_000)
    expect(made.reports).toEqual([{ decisions: 360, late: 60, roundTrip: { medianMs: 1, most95Ms: 400 } }])
  })

  it.each<[string, readonly number[], { late?: number; ms?: number; answers?: number }, number]>([
    ["up to 5 % of a minute's decisions", SLOW, { answers: 380 }, 3],
    ["fewer than 20 decisions", SLOW, { late: 6 }, 3],
    ["refused or broken connections, without a late reply", [1, 2, 1], {}, 20],
    ["a silence of more than a second, such as from a frozen server", SLOW, { late: 500, ms: 1_001 }, 3],
    ["replies that took over a second because the server was frozen", [1, 1, 2_500, 3_000], { late: 500 }, 3],
    ["one or two outages that end with late replies", SLOW, { late: 500 }, 2],
    ["a store that never replies", [], {}, 20],
  ])("are not reported for %s", (_what, roundTripsMs, each, times) => {
    const made = setUp(roundTripsMs)
    for (let minute = 0; minute < 3; minute++) {
      for (let nth = 0; nth < times; nth++) stall(made, each)
      made.pass(60_000)
    }
    expect([made.reports, made.share.isCounting]).toEqual([[], false])
  })

  it("are reported without the decisions of an outage in the same minute", () => {
    const made = setUp(SLOW)
    stall(made, { late: 5_000, ms: 20_000 })
    for (let nth = 0; nth < 3; nth++) stall(made)
    stall(made, { late: 5_000, ms: 20_000 })
    made.pass(60_000)
    expect(made.reports).toMatchObject([{ decisions: 560, late: 60 }])
  })

  it("are not reported if the store sent no reply within the minute, because this is an outage", () => {
    const { reports, fail, pass } = setUp([1])
    fail(timeout, 500)
    pass(60_000)
    fail(timeout, 500)
    vi.advanceTimersByTime(1_000)
    expect(reports).toEqual([])
  })
})
