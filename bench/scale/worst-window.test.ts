import { describe, expect, it } from "vitest"
import { Grants } from "./worst-window.ts"

function grantsOf(...all: readonly (readonly [atMs: number, units: number])[]): Grants {
  const grants = new Grants(100)
  for (const [atMs, units] of all) grants.add(atMs, units)
  return grants
}

describe("the most units in any window", () => {
  it("is 0 without grants", () => {
    expect(grantsOf().mostIn(1_000)).toBe(0)
  })

  it("excludes a grant that is a whole window old", () => {
    const grants = grantsOf([100, 2], [1_100, 3])
    expect(grants.mostIn(1_000)).toBe(3)
    expect(grants.mostIn(1_001)).toBe(5)
  })

  it("is found in a window that begins between multiples of its length", () => {
    expect(grantsOf([150, 1], [1_050, 4], [1_140, 4], [2_100, 4]).mostIn(1_000)).toBe(9)
  })

  it("includes grants that were added out of order, and all grants of a millisecond", () => {
    expect(grantsOf([400, 1], [100, 2], [400, 3]).mostIn(301)).toBe(6)
  })

  it("excludes grants after they leave the window", () => {
    expect(grantsOf([100, 5], [101, 1], [110, 3], [111, 3]).mostIn(3)).toBe(6)
  })
})
