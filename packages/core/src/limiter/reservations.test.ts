import { setImmediate as turn } from "node:timers/promises"
import { describe, expect, it } from "vitest"
import { StoreUnavailableError } from "../ground/errors.ts"
import { type ManualClock, manualClock } from "../ground/manual-clock.ts"
import type { RequestFacts } from "../request/request.ts"
import type { Rule } from "../rules/rule.ts"
import { memoryStore } from "../stores/memory/memory-store.ts"
import type { Store } from "../stores/store.ts"
import { createLimiter } from "./create-limiter.ts"
import type { Limiter } from "./interface/limiter.ts"

const RPM: Rule = { name: "rpm", field: "ip", limit: 60, window: "1 hour", algorithm: "fixed-window" }
const TPM: Rule = { ...RPM, name: "tpm", limit: 1_000, counts: "tokens", cost: 2 }
const BUCKET: Rule = { ...RPM, name: "bucket", algorithm: "token-bucket", burst: 20 }
const FIVE: Rule = { name: "five", field: "ip", concurrent: 5, hold: "4 seconds" }
const ALICE: RequestFacts = { remoteAddress: "192.0.2.1" }
const MINUTE = 60_000

/** Creates a limiter of each process: all of them share the store and the clock. */
function processes(rules: readonly Rule[] = [RPM, TPM, BUCKET, FIVE], clock: ManualClock = manualClock()) {
  const memory = memoryStore({ clock })
  const faults: { refund?: Error; mark?: Error; take?: Error } = {}
  const store: Store = {
    isShared: true,
    take(checks) {
      if (faults.take !== undefined) throw faults.take
      return memory.take(checks)
    },
    read: (checks) => memory.read(checks),
    refund(refunds) {
      const isMark = refunds.some(({ policy }) => policy.counter === "reservation")
      const fault = isMark ? faults.mark : faults.refund
      if (fault !== undefined) throw fault
      return memory.refund(refunds)
    },
    reset: (keys) => memory.reset(keys),
    close() {},
  }
  const start = (own: readonly Rule[] = rules, service = "chat"): Limiter =>
    createLimiter({ rules: [...own], service, units: { tokens: 100 }, store, clock })
  return { clock, faults, start }
}

async function leftOf(limiter: Limiter): Promise<Record<string, unknown>> {
  const { checks } = await limiter.peek(ALICE)
  return Object.fromEntries(checks.map(({ policy, remaining }) => [policy, remaining]))
}

const FULL = { rpm: 60, tpm: 1_000, bucket: 20, five: 5 }

/** Another process claims the same names, so a test closes the process that made the decision. */
async function handOver(first: Limiter, second: () => Limiter): Promise<{ text: string; worker: Limiter }> {
  const { text } = first.reserve(await first.enforce(ALICE))
  await first.close()
  return { text, worker: second() }
}

describe("a reservation", () => {
  it("is settled in another process, which corrects the units and releases the permits", async () => {
    const { start } = processes()
    const { text, worker } = await handOver(start(), start)
    expect(await leftOf(worker)).toEqual({ rpm: 59, tpm: 800, bucket: 19, five: 4 })
    expect(await worker.settleReservation(text, { used: { tokens: 30 } })).toBe(true)
    expect(await leftOf(worker)).toEqual({ rpm: 59, tpm: 940, bucket: 19, five: 5 })
  })

  it("is settled only once, whoever tries again", async () => {
    const { start } = processes()
    const { text, worker } = await handOver(start(), start)
    const settled = await Promise.all([1, 2, 3].map(() => worker.settleReservation(text, { refund: true })))
    expect(settled.sort()).toEqual([false, false, true])
    expect(await leftOf(worker)).toEqual(FULL)
  })

  it("that is refunded gives back everything, and one without used units only its permits", async () => {
    const { start } = processes()
    const first = await handOver(start(), start)
    await first.worker.settleReservation(first.text)
    expect(await leftOf(first.worker)).toEqual({ rpm: 59, tpm: 800, bucket: 19, five: 5 })
    const { text } = first.worker.reserve(await first.worker.enforce(ALICE))
    await first.worker.settleReservation(text, { refund: true })
    expect(await leftOf(first.worker)).toEqual({ rpm: 59, tpm: 800, bucket: 19, five: 5 })
  })

  it("charges more than it took, even above the limit, with each rule's own cost", async () => {
    const { start } = processes()
    const { text, worker } = await handOver(start(), start)
    await worker.settleReservation(text, { used: { requests: 3, tokens: 600 } })
    expect(await leftOf(worker)).toEqual({ rpm: 57, tpm: 0, bucket: 17, five: 5 })
  })

  it("leaves the decision empty, so that nothing is given back twice", async () => {
    const { start } = processes()
    const limiter = start()
    const decision = await limiter.enforce(ALICE)
    const { text } = limiter.reserve(decision)
    expect(limiter.status.inFlight).toBe(0)
    await limiter.refund(decision)
    await limiter.release(decision)
    expect(await leftOf(limiter)).toEqual({ rpm: 59, tpm: 800, bucket: 19, five: 4 })
    expect(() => limiter.reserve(decision)).toThrow("was settled, refunded or reserved before")
    expect(await limiter.settleReservation(text, { refund: true })).toBe(true)
    expect(await leftOf(limiter)).toEqual(FULL)
  })

  it("contains no permits that were released before, which another request may hold", async () => {
    const { start } = processes([{ ...FIVE, concurrent: 2 }])
    const limiter = start()
    const released = await limiter.enforce(ALICE)
    await limiter.release(released)
    const { text } = limiter.reserve(released)
    await limiter.enforce(ALICE)
    await limiter.enforce(ALICE)
    await limiter.settleReservation(text)
    expect((await limiter.decide(ALICE)).allowed).toBe(false)
  })

  it("of a settled decision takes its permits along, and this process no longer renews them", async () => {
    const { start, clock } = processes([RPM, { ...FIVE, concurrent: 1 }])
    const limiter = start()
    const decision = await limiter.enforce(ALICE)
    await limiter.settle(decision, 2)
    const { text } = limiter.reserve(decision)
    expect(limiter.status.inFlight).toBe(0)
    expect(await limiter.settleReservation(text)).toBe(true)
    clock.advance(2_500)
    await turn()
    expect(await leftOf(limiter)).toEqual({ rpm: 58, five: 1 })
  })

  it("cannot be made of a refused decision, nor of a decision of another limiter", async () => {
    const { start } = processes([{ ...RPM, limit: 1 }])
    const [limiter, other] = [start(), start(undefined, "other")]
    const decision = await limiter.decide(ALICE)
    expect(() => other.reserve(decision)).toThrow("was made by another limiter")
    const refused = await limiter.decide(ALICE)
    expect(() => limiter.reserve(refused)).toThrow("was refused, so nothing was taken")
  })

  it("of a request without rules is settled like any other", async () => {
    const { start } = processes([{ ...RPM, match: { path: "/other" } }])
    const limiter = start()
    const reservation = limiter.reserve(await limiter.decide({ ...ALICE, url: "/" }))
    expect(reservation).toEqual({ text: expect.any(String) })
    expect([
      await limiter.settleReservation(reservation.text),
      await limiter.settleReservation(reservation.text),
    ]).toEqual([true, false])
  })

  it("of another service, and any other text, is an error", async () => {
    const { start } = processes()
    const [chat, other] = [start(), start(undefined, "other")]
    const { text } = chat.reserve(await chat.enforce(ALICE))
    await expect(other.settleReservation(text)).rejects.toThrow(
      'text: is a reservation of the service "chat"',
    )
    await expect(other.settleReservation("nonsense")).rejects.toThrow("text: is not a reservation")
    await expect(chat.renewReservation("")).rejects.toThrow("text: is not a reservation")
  })

  it("rejects unknown options, and units that the limiter does not know", async () => {
    const { start } = processes()
    const limiter = start()
    const { text } = limiter.reserve(await limiter.enforce(ALICE))
    const wrong = [{ use: {} }, { used: { token: 1 } }, { used: { tokens: -1 } }, { refund: 1 }, 7]
    for (const options of wrong) {
      await expect(limiter.settleReservation(text, options as object)).rejects.toMatchObject({
        code: "SLUICE_INVALID_OPTION",
      })
    }
    expect(await limiter.settleReservation(text)).toBe(true)
  })

  it("is accepted for ten minutes, and for ten minutes more after each renewal", async () => {
    const { start, clock } = processes([RPM, FIVE])
    const limiter = start()
    const { text } = limiter.reserve(await limiter.enforce(ALICE))
    clock.advance(10 * MINUTE)
    const renewed = await limiter.renewReservation(text)
    clock.advance(1)
    await expect(limiter.settleReservation(text)).rejects.toThrow(
      "is no longer accepted, because it is too old",
    )
    await expect(limiter.renewReservation(text)).rejects.toThrow(
      "is no longer accepted, because it is too old",
    )
    expect(await limiter.settleReservation(renewed.text, { refund: true })).toBe(true)
    expect(await leftOf(limiter)).toEqual({ rpm: 60, five: 5 })
  })

  it("holds its permits as long as it is renewed within the given time", async () => {
    const { start, clock } = processes([FIVE])
    const limiter = start()
    let reservation = limiter.reserve(await limiter.enforce(ALICE))
    for (let renewals = 0; renewals < 10; renewals++) {
      const { renewWithinMs = 0 } = reservation
      expect(renewWithinMs).toBeGreaterThanOrEqual(2_000)
      expect(renewWithinMs).toBeLessThanOrEqual(4_000)
      clock.advance(renewWithinMs - 1)
      expect(await leftOf(limiter)).toEqual({ five: 4 })
      reservation = await limiter.renewReservation(reservation.text)
    }
    clock.advance(reservation.renewWithinMs ?? 0)
    expect(await leftOf(limiter)).toEqual({ five: 5 })
  })

  it("cannot be renewed after it was settled, so that no permit stays taken", async () => {
    const { start } = processes([FIVE])
    const limiter = start()
    const { text } = limiter.reserve(await limiter.enforce(ALICE))
    await limiter.settleReservation(text)
    await expect(limiter.renewReservation(text)).rejects.toThrow("text: was settled before")
    expect(await leftOf(limiter)).toEqual({ five: 5 })
  })

  it("of many rules is not too long to be settled, and contains its permits first", async () => {
    const long = Array.from({ length: 300 }, (_, i): Rule => ({ ...RPM, name: `rule${i}` }))
    const { start } = processes([...long, FIVE])
    const limiter = start()
    const { text, renewWithinMs } = limiter.reserve(await limiter.enforce(ALICE))
    expect(text.length).toBeLessThanOrEqual(8_192)
    expect(text.length).toBeGreaterThan(7_000)
    expect(renewWithinMs).toBeGreaterThanOrEqual(2_000)
    expect(await limiter.settleReservation(text, { refund: true })).toBe(true)
    const remaining = Object.values(await leftOf(limiter))
    expect(remaining.at(-1)).toBe(5)
    expect(new Set(remaining.slice(0, -1))).toEqual(new Set([59, 60]))
  })

  it("of permits that were taken without the store is renewed after half of hold, and counted then", async () => {
    const { start, faults } = processes([FIVE])
    const limiter = start()
    faults.take = new StoreUnavailableError("Redis is gone.", { outcome: "not-applied" })
    const { text, renewWithinMs } = limiter.reserve(await limiter.enforce(ALICE))
    expect(renewWithinMs).toBe(2_000)
    delete faults.take
    expect(await leftOf(limiter)).toEqual({ five: 5 })
    const renewed = await limiter.renewReservation(text)
    expect(await leftOf(limiter)).toEqual({ five: 4 })
    await limiter.settleReservation(renewed.text)
    expect(await leftOf(limiter)).toEqual({ five: 5 })
  })

  it("skips rules that are gone or that count differently now", async () => {
    const { start } = processes()
    const changed = [
      { ...TPM, limit: 5_000 },
      { ...BUCKET, window: "2 hours" },
    ]
    const { text, worker } = await handOver(start(), () => start(changed))
    expect(await worker.settleReservation(text, { refund: true })).toBe(true)
    expect(await leftOf(worker)).toEqual({ tpm: 5_000, bucket: 20 })
  })

  it("can be settled again if the store certainly changed nothing, and not if the outcome is unknown", async () => {
    const { start, faults } = processes([RPM])
    const limiter = start()
    const [first, second] = [
      limiter.reserve(await limiter.enforce(ALICE)),
      limiter.reserve(await limiter.enforce(ALICE)),
    ]
    faults.refund = new StoreUnavailableError("Redis is gone.", { outcome: "not-applied" })
    await expect(limiter.settleReservation(first.text, { refund: true })).rejects.toThrow(
      "you can call settle again",
    )
    faults.refund = new StoreUnavailableError("Redis was silent.", { outcome: "unknown" })
    await expect(limiter.settleReservation(second.text, { refund: true })).rejects.toThrow(
      "Another settle has no effect",
    )
    faults.mark = new StoreUnavailableError("Redis is gone.", { outcome: "not-applied" })
    faults.refund = faults.mark
    const third = limiter.reserve(await limiter.enforce(ALICE))
    await expect(limiter.settleReservation(third.text)).resolves.toBe(true)
    const fourth = limiter.reserve(await limiter.enforce(ALICE))
    await expect(limiter.settleReservation(fourth.text, { refund: true })).rejects.toThrow(
      "Another settle has no effect",
    )
    delete faults.mark
    delete faults.refund
    expect(await limiter.settleReservation(first.text, { refund: true })).toBe(true)
    expect(await limiter.settleReservation(second.text, { refund: true })).toBe(false)
    expect(await leftOf(limiter)).toEqual({ rpm: 57 })
  })
})
