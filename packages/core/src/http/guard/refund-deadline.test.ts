import { setImmediate as nextTurn } from "node:timers/promises"
import { describe, expect, it } from "vitest"
import { ClosedError, StoreUnavailableError } from "../../ground/errors.ts"
import { manualClock } from "../../ground/manual-clock.ts"
import type { Warning } from "../../ground/warnings.ts"
import { createLimiter } from "../../limiter/create-limiter.ts"
import type { LimiterSettings } from "../../limiter/options/options.ts"
import type { RequestFacts } from "../../request/request.ts"
import { memoryStore } from "../../stores/memory/memory-store.ts"
import type { RefundLostEvent, Store } from "../../stores/store.ts"
import { methodsOf } from "../../stores/testing/methods-of.ts"
import { createGuard } from "./create-guard.ts"

const ALICE: RequestFacts = { remoteAddress: "192.0.2.1" }
const MINUTE = 60_000
const QUIET = { warn() {}, error() {} }
const down = () => Promise.reject(new Error("down"))
const hung = () => new Promise<never>(() => undefined)
const notSent = () =>
  Promise.reject(new StoreUnavailableError("not sent", { kind: "unavailable", outcome: "not-applied" }))

/** Creates a limiter on a memory store. While `fault` is set, refunds and resets call it and fail with its error. */
function setUp({ limit = 10, window = "1 hour", ...options }: LimiterSettings<RequestFacts> = {}) {
  const clock = manualClock()
  const inner = memoryStore({ clock })
  const line: { fault: (() => Promise<never>) | undefined; deadlines: (number | undefined)[] } = {
    fault: undefined,
    deadlines: [],
  }
  const store: Store = {
    ...methodsOf(inner),
    async refund(refunds, withinMs) {
      line.deadlines.push(withinMs)
      await line.fault?.()
      inner.refund(refunds)
    },
    async reset(keys, withinMs) {
      line.deadlines.push(withinMs)
      await line.fault?.()
      inner.reset(keys)
    },
  }
  const limiter = createLimiter({ limit, window, clock, store, logger: QUIET, ...options })
  const warnings: Warning[] = []
  const lost: RefundLostEvent[] = []
  limiter.on("warning", (warning) => warnings.push(warning))
  limiter.on("refund-lost", (event) => lost.push(event))
  const remaining = async () => (await limiter.peek(ALICE, { cost: 0 })).remaining
  return { clock, line, store, limiter, warnings, lost, remaining }
}

describe("refund, settle and reset", () => {
  it("pass storeTimeoutMs to the store", async () => {
    const { limiter, line } = setUp({ storeTimeoutMs: 2_000 })
    await limiter.refund(await limiter.decide(ALICE))
    await limiter.settle(await limiter.decide(ALICE, { cost: 3 }), 1)
    await limiter.reset(ALICE)
    expect(line.deadlines).toEqual([2_000, 2_000, 2_000])
  })

  it("time out in the limiter if the store has no timeout", async () => {
    const { limiter, line } = setUp({ storeTimeoutMs: 5 })
    const [first, second] = [await limiter.decide(ALICE), await limiter.decide(ALICE)]
    line.fault = hung
    for (const call of [limiter.refund(first), limiter.settle(second, 0), limiter.reset(ALICE)]) {
      await expect(call).rejects.toMatchObject({ kind: "timeout", outcome: "unknown" })
    }
  })

  it("can be called again after a failure that changed nothing, as the message says", async () => {
    const { limiter, line, remaining } = setUp()
    const decision = await limiter.decide(ALICE, { cost: 4 })
    line.fault = notSent
    await expect(limiter.refund(decision)).rejects.toMatchObject({
      outcome: "not-applied",
      kind: "unavailable",
      message: "not sent. Nothing was changed, so you can call refund again.",
      cause: { message: "not sent" },
    })
    await expect(limiter.settle(decision, 1)).rejects.toThrow("you can call settle again")
    await expect(limiter.reset(ALICE)).rejects.toThrow("you can call reset again")
    line.fault = undefined
    await limiter.settle(decision, 1)
    expect(await remaining()).toBe(9)
    await limiter.refund(decision)
    expect(await remaining()).toBe(9)
  })

  it("cannot be repeated after a failure with an unknown outcome, except reset, as the messages say", async () => {
    const { limiter, line, remaining } = setUp()
    const decision = await limiter.decide(ALICE, { cost: 4 })
    line.fault = down
    await expect(limiter.refund(decision)).rejects.toMatchObject({
      outcome: "unknown",
      message:
        "The store failed: down. It is unknown whether the units were refunded. " +
        "Another refund has no effect, because it could count the units twice.",
    })
    await expect(limiter.reset(ALICE)).rejects.toThrow("You can call reset again.")
    line.fault = undefined
    await limiter.refund(decision)
    expect(await remaining()).toBe(6)
    await limiter.reset(ALICE)
    expect(await remaining()).toBe(10)
  })

  it("reject with a ClosedError if the store has been closed", async () => {
    const { limiter, line } = setUp()
    const decision = await limiter.decide(ALICE)
    line.fault = () => Promise.reject(new ClosedError("The store has been closed."))
    for (let times = 0; times < 2; times++)
      await expect(limiter.refund(decision)).rejects.toThrow(ClosedError)
  })
})

describe("a background refund", () => {
  /** Creates a guard whose admitted requests receive a response and are then refunded. */
  function setUpGuard() {
    const { store, clock, line, remaining, limiter, warnings, lost } = setUp({ refundWhen: () => true })
    const guard = createGuard<RequestFacts>({ limiter })
    const answer = async () => {
      const request = { ...ALICE }
      await guard.check(request, request)
      guard.reportStatus(request, 200)
      await nextTurn()
    }
    return { store, clock, line, remaining, limiter, warnings, lost, answer }
  }

  it("times out after ten seconds, or after twice a decision's timeout if that is longer", async () => {
    const { answer, line } = setUpGuard()
    await answer()
    expect(line.deadlines).toEqual([10_000])
    const slow = setUp({ storeTimeoutMs: 20_000, refundWhen: () => true })
    const guard = createGuard<RequestFacts>({ limiter: slow.limiter })
    const request = { ...ALICE }
    await guard.check(request, request)
    guard.reportStatus(request, 200)
    await nextTurn()
    expect(slow.line.deadlines).toEqual([40_000])
  })

  it("is tried once, and emits an event each time it is lost, but logs once a minute", async () => {
    const { answer, clock, line, warnings, lost, remaining } = setUpGuard()
    line.fault = notSent
    for (let i = 0; i < 3; i++) await answer()
    expect(line.deadlines).toHaveLength(3)
    expect(lost).toMatchObject(Array(3).fill({ type: "refund-lost", error: { outcome: "not-applied" } }))
    expect(warnings).toMatchObject([{ code: "SLUICE_REFUND_LOST", cause: { message: "not sent" } }])
    expect(warnings[0]?.message).toContain("A refund was lost, so its units may stay taken")
    clock.advance(MINUTE - 1)
    await answer()
    expect(warnings).toHaveLength(1)
    clock.advance(1)
    await nextTurn()
    expect(warnings).toHaveLength(2)
    expect(warnings[1]?.message).toContain("3 refunds were lost, so their units may stay taken")
    clock.advance(MINUTE)
    await nextTurn()
    expect(warnings).toHaveLength(2)
    await answer()
    expect(warnings[2]?.message).toContain("A refund was lost")
    expect(await remaining()).toBe(5)
  })

  it("is logged as lost when the limiter closes, at the latest", async () => {
    const { answer, clock, line, limiter, warnings } = setUpGuard()
    line.fault = notSent
    for (let i = 0; i < 5; i++) await answer()
    await limiter.close()
    expect(warnings.map(({ message }) => message.split(",")[0])).toEqual([
      "A refund was lost",
      "4 refunds were lost",
    ])
    clock.advance(MINUTE)
    await nextTurn()
    expect(warnings).toHaveLength(2)
  })

  it("is not reported as lost if the store or the limiter was closed", async () => {
    const { answer, line, limiter, warnings, lost } = setUpGuard()
    line.fault = () => Promise.reject(new ClosedError("The store has been closed."))
    await answer()
    const request = { ...ALICE }
    const guard = createGuard<RequestFacts>({ limiter })
    await guard.check(request, request)
    await limiter.close()
    guard.reportStatus(request, 200)
    await nextTurn()
    expect([line.deadlines.length, warnings, lost]).toEqual([1, [], []])
  })

  it("times out after ten seconds, also for a client that left the queue", async () => {
    const { limiter, line, clock } = setUp({
      algorithm: "leaky-bucket",
      limit: 1,
      window: "1 minute",
      burst: 3,
      throttle: "hard",
    })
    await limiter.acquire(ALICE)
    const gone = new AbortController()
    const waiting = limiter.acquire(ALICE, { signal: gone.signal })
    gone.abort(new Error("gone"))
    await expect(waiting).rejects.toThrow("gone")
    clock.advance(1)
    await nextTurn()
    expect(line.deadlines).toEqual([10_000])
  })
})
