import { describe, expect, it } from "vitest"
import { agrees, differenceOf, medianOf } from "./cells.ts"

const cell = (run: number) => ({ name: "n", figure: "f", planned: 100, run })

describe("a cell", () => {
  it("agrees with the plan if the run differs by at most 5 %", () => {
    expect([94, 96, 100, 104, 106].map((run) => agrees(cell(run)))).toEqual([false, true, true, true, false])
  })

  it("shows how far the run is above or below the plan", () => {
    expect(differenceOf(cell(80))).toBeCloseTo(-0.2, 12)
  })

  it("shows the median of several runs", () => {
    expect(medianOf([[cell(1)], [cell(9)], [cell(3)]])).toEqual([cell(3)])
  })

  it("does not agree with the plan if the run has no result", () => {
    expect(agrees(cell(Number.NaN))).toBe(false)
  })
})
