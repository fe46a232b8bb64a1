import { describe, expect, it } from "vitest"
import { chargeable } from "./counters.ts"

const MOST = Number.MAX_SAFE_INTEGER

describe("chargeable()", () => {
  it.each([
    // current, previous, requested units, resulting units
    [0, 0, 5, 5],
    [3, 4, 5, 5],
    [MOST, 0, 5, 5],
    [3, 4, -5, -5],
    [MOST - 2, 0, -5, -2],
    [MOST - 9, 7, -5, -2],
    [MOST - 5, 0, -5, -5],
    [MOST, 0, -5, 0],
    // The units of two windows together may exceed the safe integers.
    [MOST, 9, -5, 0],
  ])(
    "for counts of %i (current window) and %i (previous window), limits a change of %i units to %i",
    (current, previous, units, expected) => {
      expect(chargeable({ startMs: 0, current, previous }, units)).toBe(expected)
    },
  )
})
