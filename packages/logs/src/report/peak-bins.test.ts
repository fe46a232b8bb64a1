import { describe, expect, it } from "vitest"
import { binLabel, limitPosition, peakBins } from "./peak-bins.ts"

const bins = (edges: readonly number[]) => peakBins({ edges, counts: [...edges.map(() => 1), 2] })

describe("peakBins", () => {
  it("marks the bars whose clients all exceed the limit", () => {
    expect(bins([0.5, 1, 1.5]).map((bin) => [binLabel(bin), bin.clients, bin.isOver])).toEqual([
      ["up to 0.5×", 1, false],
      ["0.5× to 1×", 1, false],
      ["1× to 1.5×", 1, true],
      ["above 1.5×", 2, true],
    ])
  })
})

describe("limitPosition", () => {
  it.each([
    ["at an edge", [0.5, 1, 1.5], 2],
    ["within a bar", [0.5, 1.5], 1.5],
    ["in the first bar", [4], 0.25],
    ["in the last bar", [0.1, 0.5], 2.5],
  ])("is %s", (_place, edges, expected) => {
    expect(limitPosition(bins(edges))).toBe(expected)
  })
})
