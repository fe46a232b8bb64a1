import { setImmediate as nextTurn } from "node:timers/promises"
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
  const store = { ...methodsOf(memoryStore()), ...(roundTripsMs && { recentRoundTripsMs: roundTripsMs }) }
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

  it("are reported as soon as they are more than 5 % of the minute's decisions", () => {
    const { counts, reports, fail } = setUp([80])
    fail(timeout, 1)
    counts.answers += 380
    fail(timeout, 19)
    // 20 of 400.
    expect(reports).toEqual([])
    fail(timeout, 1)
    expect(reports).toMatchObject([{ decisions: 401, late: 21 }])
  })

  it("include decisions degraded by an open breaker, if timeouts and not errors opened the breaker", () => {
    const opened = setUp([80])
    opened.fail(timeout, 5)
    opened.fail(unavailable, 15)
    expect(opened.reports).toMatchObject([{ decisions: 20, late: 20 }])
    const failing = setUp([80])
    failing.fail(broken, 5)
    failing.fail(unavailable, 100)
    failing.fail(new Error("no error of a store"), 100)
    expect([failing.reports, failing.share.isCounting]).toEqual([[], false])
  })

  it("are reported after one second if all of them came before the first reply", () => {
    const roundTripsMs: number[] = []
    const { reports, fail } = setUp(roundTripsMs)
    fail(timeout, 300)
    expect([reports.length, vi.getTimerCount()]).toEqual([0, 1])
    roundTripsMs.push(80)
    vi.advanceTimersByTime(1_000)
    expect(reports).toMatchObject([{ decisions: 300, late: 300, roundTrip: { medianMs: 80 } }])
    expect(vi.getTimerCount()).toBe(0)
  })

  it("are reported only at the end of the minute if each reply takes over a second, which may be a stall", () => {
    const { reports, fail, pass } = setUp([1_200, 1_300, 1_250])
    fail(timeout, 5)
    fail(unavailable, 95)
    expect(reports).toEqual([])
    pass(60_000)
    expect(reports).toEqual([{ decisions: 100, late: 100, roundTrip: { medianMs: 1_250, most95Ms: 1_300 } }])
  })

  it("are reported with the round trip of late answers if the store measures no round trips", async () => {
    const { reports, fail, share } = setUp()
    let answer: (value: unknown) => void = () => undefined
    const answers = new Promise((resolve) => {
      answer = resolve
    })
    const sentAtMs = performance.now() - TIMEOUT_MS
    share.timeLate(answers, sentAtMs)
    share.timeLate(Promise.reject(new Error("gone")), sentAtMs)
    vi.advanceTimersByTime(30)
    answer([])
    await nextTurn()
    fail(timeout, 20)
    expect(reports).toMatchObject([{ roundTrip: { medianMs: TIMEOUT_MS + 30 } }])
  })
})

describe("timeouts of a store whose replies are quick", () => {
  it("are reported at the end of the minute if they were over 5 % of its decisions", () => {
    const { counts, reports, fail, pass } = setUp([1, 2, 1])
    fail(timeout, 40)
    counts.answers += 500
    pass(59_999)
    expect(reports).toEqual([])
    pass(1)
    expect(reports).toEqual([{ decisions: 540, late: 40, roundTrip: { medianMs: 1, most95Ms: 2 } }])
  })

  it("are not reported up to 5 % of a minute's decisions, counted for each minute separately", () => {
    const { counts, reports, fail, pass, share } = setUp([1])
    for (let minute = 0; minute < 3; minute++) {
      fail(timeout, 19)
      counts.answers += 10
      pass(60_000)
    }
    fail(timeout, 40)
    counts.answers += 760
    pass(60_000)
    expect([reports, share.isCounting]).toEqual([[], false])
  })

  it("are not reported if no call of the minute was answered, because that is an outage", () => {
    const { reports, fail, pass } = setUp([1])
    fail(timeout, 500)
    pass(60_000)
    fail(timeout, 500)
    vi.advanceTimersByTime(1_000)
    expect(reports).toEqual([])
  })

  it("are reported with a round trip that ignores replies after a stall", () => {
    const { counts, reports, fail, pass } = setUp([2_500, 3_000, 1_001, 3])
    fail(timeout, 100)
    expect(reports).toEqual([])
    counts.answers++
    pass(60_000)
    expect(reports).toMatchObject([{ roundTrip: { medianMs: 3, most95Ms: 3 } }])
  })

  it("are reported without a round trip if none was measured", () => {
    const { counts, reports, fail, pass } = setUp([])
    fail(timeout, 100)
    counts.answers++
    pass(60_000)
    expect(reports).toEqual([{ decisions: 101, late: 100, roundTrip: undefined }])
  })
})
