import { describe, expect, it } from "vitest"
import { afterSample, isOverdue, type LoopSample, UNKNOWN } from "./spare-capacity.ts"

const CALM: LoopSample = { utilization: 0.2, delayMs: 3 }
const BUSY: LoopSample = { utilization: 0.8, delayMs: 3 }
const LATE: LoopSample = { utilization: 0.2, delayMs: 70 }
const SATURATED: LoopSample = { utilization: 0.9, delayMs: 3 }
const STALLED: LoopSample = { utilization: 0.2, delayMs: 100 }
const UNREADABLE: LoopSample = { utilization: Number.NaN, delayMs: 3 }

const SAMPLES: Readonly<Record<string, LoopSample>> = {
  c: CALM,
  b: BUSY,
  l: LATE,
  S: SATURATED,
  D: STALLED,
  n: UNREADABLE,
}

/** Returns the state after each of the samples: "+" stands for spare capacity. */
function told(samples: string): string {
  let known = UNKNOWN
  return [...samples]
    .map((name) => {
      known = afterSample(known, SAMPLES[name] as LoopSample)
      return known.isSpare ? "+" : "-"
    })
    .join("")
}

describe("spare capacity by samples of the event loop", () => {
  it.each([
    // There is no spare capacity before a calm second.
    ["cccc", "---+"],
    ["cccccccc", "---+++++"],
    // One busy sample ends the spare capacity.
    ["ccccSc", "---+--"],
    ["ccccDc", "---+--"],
    ["ccccnc", "---+--"],
    // There is spare capacity again after another calm second, counted from zero.
    ["ccccScccc", "---+----+"],
    ["cccSccccc", "-------++"],
    ["cccDccccc", "-------++"],
    ["cccnccccc", "-------++"],
    // A sample that is neither calm nor saturated does not change the result.
    ["ccccblblbl", "---+++++++"],
    ["blblbl", "------"],
    // Such a sample interrupts a series of calm samples.
    ["cccbcccc", "-------+"],
    ["ccclcccc", "-------+"],
    ["ccccSbbbbbbbb", "---+---------"],
    // A load that alternates around one of the bounds does not cause flapping.
    ["ccccSbSbSbSb", "---+--------"],
    ["ccccbcbcbcbc", "---+++++++++"],
  ])("%s: %s", (samples, expected) => expect(told(samples)).toBe(expected))

  it.each([
    [0.899, 99, true],
    [0.9, 99, false],
    [0.899, 100, false],
    [Number.POSITIVE_INFINITY, 0, false],
  ])("utilization %d and %d ms of delay leave capacity to spare: %s", (utilization, delayMs, isSpare) => {
    expect(afterSample({ isSpare: true, calmSamples: 0 }, { utilization, delayMs }).isSpare).toBe(isSpare)
  })

  it.each([
    [0.749, 49, true],
    [0.75, 49, false],
    [0.749, 50, false],
  ])("utilization %d and %d ms of delay are calm: %s", (utilization, delayMs, isCalm) => {
    expect(afterSample({ isSpare: false, calmSamples: 3 }, { utilization, delayMs }).isSpare).toBe(isCalm)
  })

  it.each([
    [0, false],
    [349, false],
    [350, true],
    [60_000, true],
    [Number.NaN, true],
  ])("a sample %d ms ago is overdue: %s", (sinceMs, overdue) => expect(isOverdue(sinceMs)).toBe(overdue))
})
