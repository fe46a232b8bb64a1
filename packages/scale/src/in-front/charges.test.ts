import { algorithmOf, type CounterState, type Policy } from "@sluice/core/stores"
import { describe, expect, it } from "vitest"
import { Charges } from "./charges.ts"

const TWO_WINDOWS: Policy = {
  ...{ name: "user", counter: "user", algorithm: "sliding-window", align: "epoch" },
  ...{ limit: 10, windowMs: 1_000 },
}
const BUCKET: Policy = { ...TWO_WINDOWS, counter: "bucket", algorithm: "token-bucket", burst: 20 }

function at(startMs: number, current = 1): CounterState {
  return { startMs, current, previous: 0 }
}

function of(partition: string, policy = TWO_WINDOWS) {
  return { policy, partition }
}

describe("Charges", () => {
  it("returns one charge for the units of a counter in each window", () => {
    const charges = new Charges()
    charges.add(of("a"), 2, at(1_000))
    charges.add(of("b"), 4, at(1_000))
    charges.add(of("a"), 3, at(1_000))
    charges.add(of("a"), 5, at(2_000))
    expect(charges.takeAll()).toEqual([
      { ...of("a"), units: -5, after: at(1_000) },
      { ...of("a"), units: -5, after: at(2_000) },
      { ...of("b"), units: -4, after: at(1_000) },
    ])
  })

  it("subtracts refunded units, and returns no charge if all units were refunded", () => {
    const charges = new Charges()
    charges.add(of("a"), 3, at(1_000))
    charges.add(of("a"), -1, at(1_000))
    charges.add(of("b"), 3, at(1_000))
    charges.add(of("b"), -3, at(1_000))
    // These units were already charged before the refund.
    charges.add(of("c"), -2, at(1_000))
    expect(charges.takeAll().map(({ partition, units }) => [partition, units])).toEqual([
      ["a", -2],
      ["c", 2],
    ])
  })

  it("returns one charge for a bucket, as if the bucket was full at the latest time", () => {
    const charges = new Charges()
    charges.add(of("a", BUCKET), 1, at(2_000, 7))
    charges.add(of("a", BUCKET), 2, at(1_000, 3))
    const [charge, ...more] = charges.takeAll()
    expect([charge?.units, charge?.after, more]).toEqual([-3, at(2_000, 20), []])
  })

  it("charges a bucket in full, even if the same number of units has been refilled since", () => {
    const charges = new Charges()
    charges.add(of("a", BUCKET), 4, at(1_000, 4))
    const [charge] = charges.takeAll()
    const { tokenBucket, other } = { tokenBucket: algorithmOf(BUCKET), other: at(1_500, 6) }
    const after = charge?.after as CounterState
    expect(tokenBucket.withoutUnits(other, BUCKET, -4, after, 1_500)).toMatchObject({ current: 10 })
  })

  it("refunds to a bucket with the level after the units were taken", () => {
    const charges = new Charges()
    charges.add(of("a", BUCKET), -2, at(1_000, 7))
    expect(charges.takeAll()).toEqual([{ ...of("a", BUCKET), units: 2, after: at(1_000, 7) }])
  })

  it("uses the latest limit of a counter", () => {
    const charges = new Charges()
    charges.add(of("a"), 1, at(1_000))
    charges.add(of("a", { ...TWO_WINDOWS, limit: 20 }), 1, at(1_000))
    expect(charges.takeAll()).toMatchObject([{ policy: { limit: 20 }, units: -2 }])
  })

  it("returns each charge once, for all counters or for one counter", () => {
    const charges = new Charges()
    expect(charges.isEmpty).toBe(true)
    charges.add(of("a"), 1, at(1_000))
    charges.add(of("b"), 2, at(1_000))
    expect(charges.take(of("a"))).toMatchObject([{ partition: "a", units: -1 }])
    expect([charges.take(of("a")), charges.take(of("c")), charges.isEmpty]).toEqual([[], [], false])
    expect(charges.takeAll()).toMatchObject([{ partition: "b" }])
    expect([charges.takeAll(), charges.isEmpty]).toEqual([[], true])
  })

  it("returns the charges of a limited number of counters, and the other charges later", () => {
    const charges = new Charges()
    for (const partition of ["a", "b", "c"]) {
      for (const policy of [TWO_WINDOWS, BUCKET]) charges.add(of(partition, policy), 1, at(1_000))
    }
    const taken = [charges.takeAll(4), charges.takeAll(4), charges.takeAll(4)]
    expect(taken.map(({ length }) => length)).toEqual([4, 2, 0])
    expect(new Set(taken.flat().map(({ policy, partition }) => policy.counter + partition)).size).toBe(6)
  })
})
