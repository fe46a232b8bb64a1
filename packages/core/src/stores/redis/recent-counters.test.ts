import { describe, expect, it } from "vitest"
import { RecentCounters } from "./recent-counters.ts"

const TURN_MS = 10_000
/** Half of what is kept of each. */
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
  it("keeps values by counter and partition, of each the last that was set", () => {
    const { counters, set, has } = open()
    set("ann")
    set("ann", { counter: "other", bytes: 5 })
    set("ann", { bytes: 7 })
    expect([counters.size, counters.get("counter", "ann"), counters.get("other", "ann")]).toEqual([
      2,
      { name: "ann", bytes: 7 },
      { name: "ann", bytes: 5 },
    ])
    counters.delete("counter", "ann")
    counters.delete("counter", "bob")
    counters.delete("third", "ann")
    expect([counters.size, has("ann"), has("ann", "other")]).toEqual([1, false, true])
    counters.clear()
    expect([counters.size, has("ann", "other")]).toEqual([0, false])
  })

  it("keeps the last 50,000 values at least and 100,000 at most", () => {
    const { counters, set, has } = open()
    for (let i = 0; i < 2 * HALF - 1; i++) set(`${i}`)
    expect([counters.size, has("0")]).toEqual([2 * HALF - 1, true])
    // The first ones that nobody has asked for are dropped with their generation.
    set("last")
    set("later")
    expect([has("1"), has(`${HALF}`), has("last"), has("later")]).toEqual([false, true, true, true])
    expect(counters.size).toBeLessThanOrEqual(2 * HALF)
  })

  it("keeps what is used, however many others come", () => {
    const { set, has } = open()
    set("ann")
    for (let i = 0; i < 10 * HALF; i++) {
      set(`${i}`)
      if (i % 40_000 === 0) expect(has("ann")).toBe(true)
    }
    expect([has("ann"), has("40000")]).toEqual([true, false])
  })

  it("keeps 16 MB of parts at most", () => {
    const { counters, set, has } = open()
    for (const name of ["a", "b", "c", "d", "e"]) set(name, { bytes: HALF_BYTES / 2 })
    expect([counters.size, has("a"), has("d"), has("e")]).toEqual([5, true, true, true])
    for (const name of ["f", "g", "h"]) set(name, { bytes: HALF_BYTES / 2 })
    expect([has("b"), has("h")]).toEqual([false, true])
  })

  it("keeps no value that is larger than half of that, nor the value that was there before", () => {
    const { set, has } = open()
    set("ann", { bytes: HALF_BYTES })
    expect(has("ann")).toBe(true)
    set("ann", { bytes: HALF_BYTES + 1 })
    expect(has("ann")).toBe(false)
  })

  it("drops what was not used for two turns, when another value is set", () => {
    const { counters, set, has } = open()
    set("ann")
    set("bob", { atMs: TURN_MS - 1 })
    set("carol", { atMs: TURN_MS })
    expect(counters.size).toBe(3)
    expect(has("bob")).toBe(true)
    set("dave", { atMs: 2 * TURN_MS })
    expect([has("ann"), has("bob"), has("carol"), has("dave")]).toEqual([false, true, true, true])
  })

  it.each([-1, Number.NaN])("begins a turn when the clock went back: to %d", (atMs) => {
    const { counters, set } = open()
    set("ann")
    set("bob", { atMs })
    set("carol", { atMs: Number.NaN })
    expect(counters.size).toBeLessThanOrEqual(3)
  })
})
