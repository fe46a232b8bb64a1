import { describe, expect, it } from "vitest"
import { permitCheck } from "../testing/rule-checks.ts"
import { MovedPermits } from "./moved-permits.ts"

const FEW = permitCheck("few", 5)

describe("the permits of reservations", () => {
  it("count until they end or one of the reservations is settled", () => {
    const moved = new MovedPermits()
    moved.add(FEW, 2, 2_000, 0)
    moved.add(FEW, 1, 3_000, 500)
    expect([moved.permitsIn(FEW, 1_999), moved.permitsIn(FEW, 2_000), moved.permitsIn(FEW, 3_000)]).toEqual([
      3, 1, 0,
    ])
    moved.remove(FEW)
    expect(moved.permitsIn(FEW, 1_000)).toBe(1)
    moved.remove(FEW)
    moved.remove(FEW)
    expect([moved.permitsIn(FEW, 1_000), moved.size]).toEqual([0, 0])
  })

  it("of clients that never settle are forgotten", () => {
    const moved = new MovedPermits()
    for (let nth = 0; nth < 100_000; nth++) {
      moved.add({ ...FEW, partition: String(nth) }, 1, nth + 100, nth)
      moved.add(FEW, 1, nth + 100, nth)
    }
    expect(moved.size).toBeLessThanOrEqual(1_000)
    expect(moved.permitsIn(FEW, 99_999)).toBe(100)
  })
})
