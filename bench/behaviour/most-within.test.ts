import { describe, expect, it } from "vitest"
import { mostWithin } from "./most-within.ts"

const at = (...times: readonly (readonly [number, number])[]) =>
  times.map(([sentMs, answeredMs]) => ({ sentMs, answeredMs }))

describe("mostWithin()", () => {
  it("returns 0 without requests", () => {
    expect(mostWithin([], 1_000)).toBe(0)
  })

  it("considers any window, not only aligned ones", () => {
    expect(mostWithin(at([0, 1], [900, 901], [1_100, 1_101], [1_800, 1_801], [2_500, 2_501]), 1_000)).toBe(3)
  })

  it("counts only requests that were both sent and answered within the window", () => {
    expect(mostWithin(at([0, 1], [500, 997], [500, 998]), 1_000)).toBe(3)
    expect(mostWithin(at([0, 1], [500, 997], [500, 999]), 1_000)).toBe(2)
    expect(mostWithin(at([0, 600], [1, 2], [999, 1_000]), 1_000)).toBe(2)
  })
})
