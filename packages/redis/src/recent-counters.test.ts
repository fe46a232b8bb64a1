import { describe, expect, it } from "vitest"
import { RecentCounters } from "./recent-counters.ts"

const TURN_MS = 10_000
/** The maximum number of counters in one generation. */
const HALF = 50_000
const HALF_BYTES = 8 * 1024 * 1024

interface Value {
  readonly name: string
  readonly bytes: number
}

function open() {
  const counters = new RecentCounters<Value>(TURN_MS, ({ bytes }) => bytes)
  const set = (name: string, { bytes = 0, atMs = 0, counter = "counter" } = {}) =>
    counters.set(counter, name, { name, bytes }, atMs)
  const has = (name: string, counter = "counter") => counters.get(counter, name)?.name === name
  return { counters, set, has }
}

describe("RecentCounters", () => {
  it("returns the latest value that was set for each counter and partition", () => {
    const { counters, set, has } = open()
    expect(counters.isEmpty).toBe(true)
    set("ann")
    set("ann", { counter: "other", bytes: 5 })
    set("ann", { bytes: 7 })
    expect(counters.isEmpty).toBe(false)
    expect([counters.get("counter", "ann"), counters.get("other", "ann")]).toEqual([
      { name: "ann", bytes: 7 },
      { name: "ann", bytes: 5 },
    ])
    expect([has("bob"), has("ann", "third")]).toEqual([false, false])
  })

  it("deletes a value from both generations", () => {
    const { counters, set, has } = open()
    set("ann")
    set("ann", { counter: "other" })
    set("bob", { atMs: TURN_MS })
    // Reading Ann's value copies it into the current generation, so both generations contain it.
    expect(has("ann")).toBe(true)
    counters.delete("counter", "ann")
    counters.delete("counter", "nobody")
    counters.delete("third", "ann")
    expect([has("ann"), has("bob"), has("ann", "other")]).toEqual([false, true, true])
    counters.clear()
    expect([has("bob"), has("ann", "other"), counters.isEmpty]).toEqual([false, false, true])
  })

  it("keeps at least the last 50,000 values and at most 100,000", () => {
    const { set, has } = open()
    for (let i = 0; i < 3 * HALF + 7; i++) set(`${i}`)
    // Read from the latest to the earliest, because reading an earlier value may drop others.
    let kept = 0
    let latest = 0
    for (let i = 3 * HALF + 6; i >= 0; i--) {
      if (!has(`${i}`)) continue
      kept++
      if (i >= 2 * HALF + 7) latest++
    }
    expect(latest).toBe(HALF)
    expect(kept).toBeLessThanOrEqual(2 * HALF)
  })

  it("keeps values that are used, even if many others are set", () => {
    const { set, has } = open()
    set("ann")
    for (let i = 0; i < 10 * HALF; i++) {
      set(`${i}`)
      if (i % 40_000 === 0) expect(has("ann")).toBe(true)
    }
    expect([has("ann"), has("40000")]).toEqual([true, false])
  })

  it("counts repeated updates of a value, so that updates cannot exceed the bounds", () => {
    const { set, has } = open()
    set("ann")
    for (let i = 0; i < 2 * HALF; i++) set("bob")
    expect([has("ann"), has("bob")]).toEqual([false, true])
  })

  it("keeps at most 16 MB of parts", () => {
    const { set, has } = open()
    for (const name of ["a", "b", "c", "d", "e"]) set(name, { bytes: HALF_BYTES / 2 })
    expect([has("e"), has("d"), has("a")]).toEqual([true, true, true])
    for (const name of ["f", "g", "h"]) set(name, { bytes: HALF_BYTES / 2 })
    expect([has("b"), has("h")]).toEqual([false, true])
  })

  it("is not empty while only the previous generation has values", () => {
    const { counters, set, has } = open()
    set("ann", { bytes: HALF_BYTES + 1 })
    expect([counters.isEmpty, has("ann")]).toEqual([false, true])
  })

  it("drops values that were not used for two generations when another value is set", () => {
    const { set, has } = open()
    set("ann")
    set("bob", { atMs: TURN_MS - 1 })
    set("carol", { atMs: TURN_MS })
    expect(has("bob")).toBe(true)
    set("dave", { atMs: 2 * TURN_MS })
    expect([has("ann"), has("bob"), has("carol"), has("dave")]).toEqual([false, true, true, true])
  })

  it.each([-1, Number.NaN])("starts a new generation if the clock went back to %d", (atMs) => {
    const { set, has } = open()
    set("ann")
    set("bob", { atMs })
    set("carol", { atMs: Number.NaN })
    expect([has("ann"), has("bob"), has("carol")]).toEqual([false, true, true])
  })
})
