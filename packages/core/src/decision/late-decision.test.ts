import { describe, expect, it } from "vitest"
import { manualClock } from "../ground/clock.ts"
import { memoryStore } from "../stores/memory/memory-store.ts"
import { Decider } from "./decider.ts"
import { decisionOf, LateDecision } from "./late-decision.ts"
import type { Ask } from "./rule-check.ts"
import { ask, SECOND } from "./testing/asks.ts"

/** A decider of a memory store, whose clock a test may break. */
function open() {
  const news: string[] = []
  const clock = manualClock()
  let isBroken = false
  const store = memoryStore({ clock: { now: () => (isBroken ? Number.NaN : clock.now()) } })
  const decider = new Decider({
    store,
    storeTimeoutMs: SECOND,
    instances: 1,
    clock,
    onDegraded: () => news.push("degraded"),
    onRecovered: () => news.push("recovered"),
    onStoreError() {},
    onRefundLost() {},
    onTimeouts() {},
  })
  /** The decision that becomes of a verdict, and whether it was a late one. */
  const judge = (...asks: Ask[]) => {
    const verdict = decider.judge(asks)
    if (verdict instanceof Promise) throw new Error("The store answers with values.")
    return { decision: decisionOf(verdict), isLate: verdict instanceof LateDecision }
  }
  const setBroken = (to: boolean) => {
    isBroken = to
  }
  return { judge, decider, clock, news, setBroken }
}

const penalty = ask("blocked", 1, 1, {
  algorithm: "penalty",
  penalty: { refusals: 1, withinMs: 9, forMs: 9 },
})

describe("what is judged by one rule on a memory store", () => {
  it("is granted, as long as it fits, and refused after that, with the same numbers as any decision", () => {
    const [one, other] = [open(), open()]
    const verdicts = Array.from({ length: 3 }, () => one.judge(ask("a", 2)))
    expect(verdicts.map(({ isLate }) => isLate)).toEqual([true, true, true])
    expect(verdicts.map(({ decision }) => decision)).toEqual(
      Array.from({ length: 3 }, () => other.decider.take([ask("a", 2)])),
    )
    expect(verdicts[2]?.decision).toMatchObject({ allowed: false, refusal: "quota", remaining: 0 })
  })

  it("tells before it is a decision what it tells after that", () => {
    const { decider } = open()
    const [granted, refused] = [1, 2].map(() => decider.judge([ask("a", 5, 3)]) as LateDecision)
    expect(granted).toMatchObject({ allowed: true, retryAfterMs: 0, made: undefined })
    expect(granted?.refusal).toBe(undefined)
    expect(granted?.left).toEqual({ remaining: 2, nextUnitAfterMs: SECOND })
    expect(granted?.decision.checks[0]).toMatchObject(granted?.left ?? {})
    expect(granted?.decision).toBe(granted?.decision)
    expect(refused).toMatchObject({ allowed: false, retryAfterMs: SECOND, made: undefined })
    expect(refused?.refusal).toBe("quota")
    expect(refused?.decision).toMatchObject({ allowed: false, retryAfterMs: SECOND, refusal: "quota" })
    expect(refused?.decision).toBe(refused?.decision)
  })

  it("can be given back, and no more than once", async () => {
    const { decider, judge } = open()
    const { decision } = judge(ask("a", 2, 2))
    expect(judge(ask("a", 2)).decision.allowed).toBe(false)
    expect(await decider.refund(decision)).toHaveLength(1)
    expect(await decider.refund(decision)).toHaveLength(0)
    expect(judge(ask("a", 2, 2)).isLate).toBe(true)
  })

  it("is a decision at once where more has a say in it than one counter", () => {
    const { judge } = open()
    expect(judge()).toMatchObject({ isLate: false, decision: { policy: "" } })
    expect(judge(ask("a", 2), ask("b", 1))).toMatchObject({ isLate: false, decision: { policy: "b" } })
    expect(judge(ask("b", 1)).decision.allowed).toBe(false)
    expect(judge(ask("a", 2, 3))).toMatchObject({ isLate: false, decision: { refusal: "cost" } })
    const denied: Ask = { ...ask("c", 1), refusal: "denied" }
    expect(judge(denied)).toMatchObject({ isLate: false, decision: { refusal: "denied" } })
    const { policy } = penalty
    const blocking: Ask = { ...ask("d", 1), penalty: policy }
    expect([1, 2, 3].map(() => judge(blocking).decision.refusal)).toEqual([undefined, "penalty", "penalty"])
  })

  it("is counted and admitted by a rule that only reports", () => {
    const { judge } = open()
    const shadow: Ask = { ...ask("a", 1), shadow: true }
    expect([1, 2].map(() => judge(shadow).decision)).toMatchObject([
      { allowed: true, shadowed: [], policy: "" },
      { allowed: true, shadowed: ["a"], policy: "" },
    ])
  })

  it("is decided and counted without the store while that fails, and is news twice", () => {
    const { judge, clock, news, setBroken } = open()
    expect(judge(ask("a", 2)).isLate).toBe(true)
    setBroken(true)
    const verdicts = [1, 2, 3].map(() => judge(ask("a", 2)))
    expect(verdicts.map(({ decision }) => [decision.degraded, decision.allowed])).toEqual([
      [true, true],
      [true, true],
      [true, false],
    ])
    setBroken(false)
    clock.advance(10 * SECOND)
    expect(judge(ask("a", 2))).toMatchObject({ isLate: false, decision: { degraded: false, remaining: 1 } })
    expect(judge(ask("a", 2)).isLate).toBe(true)
    expect(news).toEqual(["degraded", "recovered"])
  })
})
