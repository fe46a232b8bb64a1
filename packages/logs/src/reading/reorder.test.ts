import { describe, expect, it } from "vitest"
import { type OpenRecord, recordOf } from "./record.ts"
import { type OrderCounts, reorder } from "./reorder.ts"

const NO_FIELDS = new Set<string>()
const at = (atMs: number): OpenRecord => recordOf({ atMs }, NO_FIELDS, 0, 1)
const counts = (): OrderCounts => ({ reordered: 0, reorderedByMs: 0, late: 0 })

describe("reorder", () => {
  it("releases a second when a line is later than its end by the reorder time", () => {
    const order = reorder(5_000, counts())
    // Each row contains the time of a line, and the times that are released after this line.
    const rows: readonly (readonly [number, readonly number[]])[] = [
      [1_500, []],
      [1_000, []],
      [6_999, []],
      [7_000, [1_000, 1_500]],
      [1_400, [1_500]],
      [12_999, [6_999]],
      [20_000, [7_000, 12_999]],
    ]
    for (const [time, expected] of rows) {
      order.add(at(time))
      expect(order.release().map(({ atMs }) => atMs)).toEqual(expected)
    }
    expect(order.end().map(({ atMs }) => atMs)).toEqual([20_000])
  })

  it("stores at most a million records", () => {
    const found = counts()
    const order = reorder(10_000, found)
    for (let index = 0; index < 1_000_000; index++) order.add(at(1_000))
    expect(order.release()).toHaveLength(0)
    order.add(at(1_000))
    expect(order.release()).toHaveLength(1_000_001)
    order.add(at(1_000))
    order.add(at(500))
    expect(order.release().map(({ atMs }) => atMs)).toEqual([1_000])
    expect(order.end()).toHaveLength(1)
    expect(found.late).toBe(1)
  })
})
