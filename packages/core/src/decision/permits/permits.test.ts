import { setImmediate as turn } from "node:timers/promises"
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { describe, expect, it, vi } from "vitest"
import { StoreUnavailableError } from "../../ground/errors.ts"
import { type ManualClock, manualClock } from "../../ground/manual-clock.ts"
import { memoryStore } from "../../stores/memory/memory-store.ts"
import type { Refund, Store } from "../../stores/store.ts"
import type { Decider, DeciderOptions } from "../decider.ts"
import type { Decision } from "../decision.ts"
import { moveOut } from "../reservation.ts"
import type { RuleCheck } from "../rule-check.ts"
import { deciderOver, permitCheck, ruleCheck } from "../testing/rule-checks.ts"
import { Ledger } from "./ledger.ts"

// A permit is counted in windows of one second, so `hold` is two seconds. Renewals take place between 100 ms and 300 ms
// after the start of a window.
const STARTS_MS = Date.UTC(2024, 0, 1)
const FIVE = permitCheck("five", 5)

/** A decider over a memory store, whose refunds are recorded and fail while `failure` is set. */
function setUp(more: Partial<DeciderOptions> = {}) {
  const clock = manualClock(STARTS_MS)
  const memory = memoryStore({ clock })
  const refunds: Refund[] = []
  const faults: { failure?: Error; pending?: Promise<void>; take?: Error } = {}
  const store: Store = {
    take(checks) {
      if (faults.take !== undefined) throw faults.take
      return memory.take(checks)
    },
    read: (checks) => memory.read(checks),
    async refund(all) {
      refunds.push(...all)
      await faults.pending
      if (faults.failure !== undefined) throw faults.failure
      memory.refund(all)
    },
    reset: (keys) => memory.reset(keys),
    close: () => memory.close(),
  }
  const lost: unknown[] = []
  const decider = deciderOver(store, clock, () => undefined, {
    onPermitsLost: (...args) => lost.push(args),
    onRefundLost: (error) => lost.push(error),
    ...more,
  })
  const used = (check: RuleCheck = FIVE): number => {
    const { previous = 0, current = 0 } = memory.read([check]).counters[0]?.state ?? {}
    return previous + current
  }
  return { clock, decider, faults, refunds, lost, used, memory }
}

const take = async (decider: Decider, ...checks: RuleCheck[]): Promise<Decision> => decider.take(checks)

/** Moves the clock in steps of 50 ms, and lets the renewals of each step finish. */
async function pass(clock: ManualClock, ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += 50) {
    clock.advance(Math.min(50, ms - passed))
    await turn()
  }
}

describe("a decision with permits", () => {
  it("holds them until it is released, once", async () => {
    const { decider, used, refunds } = setUp()
    const decision = await take(decider, FIVE)
    expect([used(), decider.ledger.permits, decider.ledger.heldIn(FIVE)]).toEqual([1, 1, 1])
    expect(decision).toMatchObject({ allowed: true, limit: 5, remaining: 4, cost: 1 })
    expect(decision.checks).toMatchObject([
      { algorithm: "in-flight", windowMs: 2_000, unit: "concurrent-requests" },
    ])
    expect(await decider.corrections.release(decision)).toMatchObject([{ partition: "" }])
    expect(await decider.corrections.release(decision)).toEqual([])
    expect([used(), decider.ledger.permits, refunds.length]).toEqual([0, 0, 1])
  })

  it("is refused with a hint when all permits are held, and takes no units of other rules", async () => {
    const { decider, used } = setUp()
    const rate = ruleCheck("rate", 10)
    const one = permitCheck("one", 1)
    await take(decider, rate, one)
    const refused = await take(decider, rate, one)
    expect(refused).toMatchObject({
      allowed: false,
      policy: "one",
      refusal: "in-flight",
      retryAfterMs: 1_000,
    })
    expect([used(rate), used(one), decider.ledger.permits]).toEqual([1, 1, 1])
  })

  it("takes no permit when a rate refuses it, which binds with its longer wait", async () => {
    const { decider, used } = setUp()
    const rate = ruleCheck("rate", 1, 1, { windowMs: 60_000 })
    await take(decider, rate, permitCheck("one", 1))
    expect(await take(decider, rate, permitCheck("one", 1))).toMatchObject({
      policy: "rate",
      refusal: "quota",
    })
    expect(await take(decider, rate, FIVE)).toMatchObject({ policy: "rate", refusal: "quota" })
    expect([used(), decider.ledger.permits]).toEqual([0, 1])
  })

  it("is bound by a rate, although fewer permits remain", async () => {
    const { decider } = setUp()
    const checks = [permitCheck("two", 2), ruleCheck("rate", 10)]
    expect(await take(decider, ...checks)).toMatchObject({ policy: "rate", remaining: 9 })
    expect(await take(decider, permitCheck("two", 2))).toMatchObject({ policy: "two", remaining: 0 })
  })

  it("costs a request of 0 units no permit", async () => {
    const { decider, used } = setUp()
    const decision = await take(decider, { ...FIVE, cost: 0 })
    expect([decision.allowed, used(), decider.ledger.permits]).toEqual([true, 0, 0])
  })

  it("gives back units with a refund, permits with a release, and both in the background", async () => {
    const { decider, used } = setUp()
    const rate = ruleCheck("rate", 10)
    const decision = await take(decider, rate, FIVE)
    expect(await decider.corrections.refund(decision)).toHaveLength(1)
    expect([used(rate), used()]).toEqual([0, 1])
    expect(await decider.corrections.release(decision)).toHaveLength(1)
    expect(await decider.corrections.refundInBackground(await take(decider, rate, FIVE))).toHaveLength(2)
    expect([used(rate), used()]).toEqual([0, 0])
    const other = await take(decider, rate, FIVE)
    await decider.corrections.release(other)
    expect([used(rate), used()]).toEqual([1, 0])
    await decider.corrections.settle(other, new Map([["requests", 3]]))
    expect([used(rate), used()]).toEqual([3, 0])
  })

  it("still holds its permits after it was settled", async () => {
    const { decider, used } = setUp()
    const rate = ruleCheck("rate", 10)
    const decision = await take(decider, rate, FIVE)
    await decider.corrections.settle(decision, new Map([["requests", 0]]))
    expect([used(rate), used()]).toEqual([0, 1])
    await decider.corrections.release(decision)
    expect(used()).toBe(0)
  })

  it("releases only the permits of the counters that a caller names", async () => {
    const { decider, used } = setUp()
    const other = permitCheck("other", 5)
    const decision = await take(decider, FIVE, other)
    await decider.corrections.refundInBackground(decision, ({ policy }) => policy.name === "other")
    expect([used(), used(other)]).toEqual([1, 0])
    await decider.corrections.refundInBackground(decision)
    expect([used(), used(other)]).toEqual([0, 0])
  })

  it("loses nothing but a report if its release fails, and the permit then ends by itself", async () => {
    const { decider, faults, lost, used, clock } = setUp()
    const decision = await take(decider, FIVE)
    faults.failure = new StoreUnavailableError("Redis is gone.")
    expect(await decider.corrections.release(decision)).toEqual([])
    expect(lost).toEqual([faults.failure])
    await pass(clock, 2_000)
    expect(used()).toBe(0)
  })
})

describe("renewals", () => {
  it("keep permits counted for as long as they are held, with one entry for all permits of a counter", async () => {
    const { clock, decider, refunds, used, lost } = setUp()
    const decisions = [await take(decider, FIVE), await take(decider, FIVE), await take(decider, FIVE)]
    await pass(clock, 10_000)
    expect(used()).toBe(3)
    expect(refunds.map(({ units }) => units)).toEqual(new Array(9).fill(-3))
    await Promise.all(decisions.map((decision) => decider.corrections.release(decision)))
    expect([used(), decider.ledger.permits, lost.length]).toEqual([0, 0, 0])
    expect(decider.ledger.counts).toMatchObject({ five: { held: 0, oldestMs: 0, renewed: 27, lost: 0 } })
  })

  it("take place once in each window, between 10 % and 30 % of it", async () => {
    const { clock, decider, refunds } = setUp()
    await take(decider, FIVE)
    clock.advance(1_099)
    await turn()
    expect(refunds).toEqual([])
    clock.advance(201)
    await turn()
    expect(refunds).toHaveLength(1)
    await pass(clock, 650)
    expect(refunds).toHaveLength(1)
  })

  it("end when no permits are held, and begin again with the next permit", async () => {
    const { clock, decider, refunds, used } = setUp()
    await decider.corrections.release(await take(decider, FIVE))
    await pass(clock, 3_000)
    expect(refunds).toHaveLength(1)
    await take(decider, FIVE)
    await pass(clock, 3_000)
    expect(used()).toBe(1)
  })

  it("follow the length of each rule's windows", async () => {
    const { clock, decider, used } = setUp()
    const slow = permitCheck("slow", 5, { windowMs: 10_000 })
    await take(decider, FIVE, slow)
    await pass(clock, 21_000)
    expect([used(), used(slow)]).toEqual([1, 1])
  })

  it("use the store's time, which may differ from the time of this process", async () => {
    const { clock, memory, used } = setUp()
    const behind = manualClock(STARTS_MS - 7_450)
    const decider = deciderOver(memory, behind)
    await take(decider, FIVE)
    for (let passed = 0; passed < 10_000; passed += 50) {
      clock.advance(50)
      behind.advance(50)
      await turn()
    }
    expect(used()).toBe(1)
  })

  it("are tried again after a failure, every eighth of the window", async () => {
    const { clock, decider, faults, refunds, used, lost } = setUp()
    await take(decider, FIVE)
    faults.failure = new StoreUnavailableError("Redis is gone.", { outcome: "not-applied" })
    await pass(clock, 1_700)
    expect(refunds.length).toBeGreaterThanOrEqual(3)
    expect(refunds.length).toBeLessThanOrEqual(5)
    delete faults.failure
    await pass(clock, 600)
    expect([used(), lost.length]).toEqual([1, 0])
  })

  it("with an unknown outcome are tried only once more in a window", async () => {
    const { clock, decider, faults, refunds } = setUp()
    await take(decider, FIVE)
    faults.failure = new StoreUnavailableError("Redis was silent.", { outcome: "unknown" })
    await pass(clock, 2_000)
    expect(refunds).toHaveLength(2)
    await pass(clock, 1_000)
    expect(refunds).toHaveLength(4)
  })

  it("add permits that the store has lost, and report permits that ended", async () => {
    const { clock, decider, faults, used, lost, memory } = setUp()
    await take(decider, FIVE)
    memory.reset([FIVE])
    await pass(clock, 1_300)
    expect(used()).toBe(1)
    faults.failure = new StoreUnavailableError("Redis is gone.", { outcome: "not-applied" })
    await pass(clock, 3_000)
    expect(used()).toBe(0)
    expect(lost).toEqual([["five", 1, faults.failure]])
    delete faults.failure
    await pass(clock, 1_000)
    expect([used(), lost.length]).toEqual([1, 1])
    expect(decider.ledger.counts).toMatchObject({ five: { held: 1, lost: 1 } })
  })

  it("of a process that was frozen count its permits again, and report them", async () => {
    const { clock, decider, used, lost } = setUp()
    await take(decider, FIVE)
    clock.advance(5_000)
    await turn()
    expect([used(), lost]).toEqual([1, [["five", 1, undefined]]])
  })

  it("do not overtake a release: it waits for the renewal in flight, and leaves no permit behind", async () => {
    const { clock, decider, faults, used } = setUp()
    const decision = await take(decider, FIVE)
    let resolve: () => void = () => undefined
    faults.pending = new Promise((done) => {
      resolve = done
    })
    await pass(clock, 1_300)
    const releasing = decider.corrections.release(decision)
    await turn()
    delete faults.pending
    resolve()
    await releasing
    expect([used(), decider.ledger.permits]).toEqual([0, 0])
  })

  it("are never two at a time for the same permit", async () => {
    const { clock, decider, faults, refunds } = setUp()
    await take(decider, FIVE)
    faults.pending = new Promise(() => undefined)
    await pass(clock, 5_000)
    expect(refunds).toHaveLength(1)
  })

  it("continue after the clock of the store went back", async () => {
    const { clock, decider, used } = setUp()
    await pass(clock, 5_000)
    const decision = await take(decider, FIVE)
    clock.advance(-3_300)
    await take(decider, FIVE)
    await pass(clock, 6_000)
    expect(used()).toBe(2)
    await decider.corrections.release(decision)
    expect(used()).toBe(1)
  })

  it("stop for a decision that code has dropped without releasing it", async () => {
    const { clock, decider, used } = setUp()
    const drop = async (): Promise<void> => void (await take(decider, FIVE))
    await drop()
    await pass(clock, 1_300)
    expect(used()).toBe(1)
    collectGarbage()
    await pass(clock, 3_000)
    expect([used(), decider.ledger.permits]).toEqual([0, 0])
  })

  it("of many counters share calls of 64, with pauses between the calls", async () => {
    const { clock, decider, refunds } = setUp()
    for (let i = 0; i < 150; i++) await take(decider, { ...FIVE, partition: String(i) })
    clock.advance(1_300)
    await turn()
    expect(refunds).toHaveLength(64)
    await pass(clock, 100)
    expect(refunds).toHaveLength(150)
  })

  it("continue after a store has thrown immediately", async () => {
    const { clock, memory, used } = setUp()
    let throws = 1
    const refund: Store["refund"] = (refunds) => {
      if (throws-- > 0) throw new Error("broken")
      return memory.refund(refunds)
    }
    const decider = deciderOver({ ...storeOf(memory), refund }, clock)
    const decision = await take(decider, FIVE)
    await pass(clock, 6_000)
    expect([decision.allowed, used()]).toEqual([true, 1])
  })

  it("count the lost permits of every rule, and report each rule at most once a second", async () => {
    const { clock, decider, lost } = setUp()
    const rules = ["one", "two", "three"].map((name, i) => permitCheck(name, 5, { windowMs: 1_000 + i }))
    const decisions = await Promise.all(rules.map((rule) => take(decider, rule)))
    clock.advance(5_000)
    await turn()
    expect(lost).toEqual(rules.map(({ policy }) => [policy.name, 1, undefined]))
    expect(decider.ledger.counts).toMatchObject({ one: { lost: 1 }, two: { lost: 1 }, three: { lost: 1 } })
    expect(decisions).toHaveLength(3)
  })

  it("end when the limiter closes", async () => {
    const { clock, decider, refunds } = setUp()
    await take(decider, FIVE)
    decider.ledger.close()
    await pass(clock, 3_000)
    expect(refunds).toEqual([])
    await take(decider, FIVE)
    await pass(clock, 3_000)
    expect(refunds).toEqual([])
  })

  it("use a timer if the clock cannot wait", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] })
    try {
      const { clock, faults: _, refunds, memory } = setUp()
      const broken = { now: () => clock.now(), wait: () => Promise.reject(new Error("no timers")) }
      const decider = deciderOver({ ...storeOf(memory), refund: (all) => void refunds.push(...all) }, broken)
      await take(decider, FIVE)
      await turn()
      clock.advance(1_300)
      vi.advanceTimersByTime(1_300)
      await turn()
      expect(refunds).toHaveLength(1)
    } finally {
      vi.useRealTimers()
    }
  })
})

function collectGarbage(): void {
  setFlagsFromString("--expose-gc")
  runInNewContext("gc")()
}

function storeOf(memory: Store): Store {
  return {
    take: (checks) => memory.take(checks),
    read: (checks) => memory.read(checks),
    refund: (refunds) => memory.refund(refunds),
    reset: (keys) => memory.reset(keys),
    close: () => memory.close(),
  }
}

describe("without the store", () => {
  const down = new StoreUnavailableError("Redis is gone.")

  it("this process admits while it holds fewer permits than its share, however they were taken", async () => {
    const { decider, faults } = setUp({ instances: 2 })
    const four = permitCheck("four", 4)
    const before = await take(decider, four)
    faults.take = down
    const during = await take(decider, four)
    expect(during).toMatchObject({ allowed: true, degraded: true, limit: 4 })
    expect(await take(decider, four)).toMatchObject({ allowed: false, refusal: "in-flight", degraded: true })
    await decider.corrections.release(before)
    expect(await take(decider, four)).toMatchObject({ allowed: true })
    expect(decider.ledger.permits).toBe(2)
  })

  it("permits are counted in the store with the next renewal after the outage", async () => {
    const { clock, decider, faults, used } = setUp()
    faults.take = down
    const decision = await take(decider, FIVE)
    const short = await take(decider, FIVE)
    await decider.corrections.release(short)
    expect([used(), decider.ledger.permits]).toEqual([0, 1])
    await pass(clock, 1_300)
    expect(used()).toBe(1)
    await decider.corrections.release(decision)
    expect(used()).toBe(0)
  })

  it("decisions that code has dropped lose their permits, too", async () => {
    const { clock, decider, faults } = setUp()
    const drop = async (): Promise<void> => void (await take(decider, FIVE))
    await drop()
    faults.take = down
    faults.failure = down
    await pass(clock, 1_300)
    collectGarbage()
    await pass(clock, 2_000)
    expect([decider.ledger.permits, decider.ledger.heldIn(FIVE)]).toEqual([0, 0])
  })

  it("permits of a reservation count until it is settled here, or until they end", async () => {
    const { clock, decider, faults } = setUp()
    const two = permitCheck("two", 2)
    for (let i = 0; i < 2; i++) moveOut(await take(decider, two))
    faults.take = down
    expect(await take(decider, two)).toMatchObject({ allowed: false, refusal: "in-flight" })
    decider.ledger.settled(two)
    const decision = await take(decider, two)
    expect([decision.allowed, decider.ledger.permits, decider.ledger.heldIn(two)]).toEqual([true, 1, 2])
    await pass(clock, 2_000)
    expect(decider.ledger.heldIn(two)).toBe(1)
  })

  it("a rule that allows or denies requests holds no permits", async () => {
    const { decider, faults } = setUp()
    faults.take = down
    expect(await take(decider, { ...FIVE, onStoreFailure: "allow" })).toMatchObject({ allowed: true })
    expect(await take(decider, { ...FIVE, onStoreFailure: "deny" })).toMatchObject({
      refusal: "store-failure",
    })
    expect(decider.ledger.permits).toBe(0)
  })
})

it("the ledger renews permits again after the store's clock has gone back, because their window may have ended", async () => {
  const [local, server] = [manualClock(STARTS_MS), manualClock(STARTS_MS)]
  const memory = memoryStore({ clock: server })
  const ledger = new Ledger({ store: memory, clock: local, onPermitsLost() {} })
  const owners: object[] = []
  const hold = (): void => {
    const { nowMs, checks } = memory.take([FIVE])
    const owner = {}
    owners.push(owner)
    ledger.hold(owner, FIVE, 1, checks[0]?.state.startMs, nowMs)
  }
  hold()
  local.advance(900)
  server.advance(900 - 5_000)
  hold()
  const counts: number[] = []
  for (let i = 0; i < 60; i++) {
    local.advance(50)
    server.advance(50)
    await turn()
    const { previous = 0, current = 0 } = memory.read([FIVE]).counters[0]?.state ?? {}
    counts.push(previous + current)
  }
  expect(owners).toHaveLength(2)
  expect(Math.min(...counts)).toBe(2)
  ledger.close()
})
