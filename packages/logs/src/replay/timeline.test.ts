import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { TimelineCounts } from "./timeline.ts"

const sum = (counts: readonly number[]): number => counts.reduce((all, each) => all + each, 0)

describe("TimelineCounts", () => {
  it("counts in steps that start at multiples of their length", () => {
    const timeline = new TimelineCounts(3)
    for (const [atMs, series] of [
      [10_500, 0],
      [10_999, 1],
      [12_000, 2],
    ] as const) {
      timeline.add(series, timeline.stepOf(atMs))
    }
    expect(timeline.result(["per-ip"])).toEqual({
      ...{ from: 10_000, stepMs: 1_000 },
      admitted: [1, 0, 0],
      refused: [1, 0, 0],
      refusedBy: { "per-ip": [0, 0, 1] },
    })
  })

  it("is empty without requests", () => {
    expect(new TimelineCounts(2).result([])).toEqual({
      ...{ from: 0, stepMs: 1_000, admitted: [], refused: [], refusedBy: {} },
    })
  })

  it("uses at most 600 steps for a log of any length, and loses no request", () => {
    const gaps = fc.array(
      fc.oneof(fc.nat(5_000), fc.nat(10_000_000), fc.nat(3_000_000_000), fc.constantFrom(3e11, 15e11)),
      {
        minLength: 1,
        maxLength: 50,
      },
    )
    fc.assert(
      fc.property(gaps, (list) => {
        const timeline = new TimelineCounts(2)
        const times: number[] = []
        let atMs = 123
        for (const gap of list) {
          atMs += gap
          times.push(atMs)
          timeline.add(0, timeline.stepOf(atMs))
        }
        const { from, stepMs, admitted, refused } = timeline.result([])
        expect(admitted.length).toBeLessThanOrEqual(600)
        expect(refused).toHaveLength(admitted.length)
        expect(sum(admitted)).toBe(list.length)
        admitted.forEach((count, step) => {
          const inStep = times.filter((time) => Math.floor((time - from) / stepMs) === step)
          expect(count).toBe(inStep.length)
        })
      }),
    )
  })
})
