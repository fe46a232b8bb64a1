import { expect, it } from "vitest"
import { median, pairedRatios, percentile, rotated } from "./statistics.ts"

it("median returns the middle value, or the mean of the two middle values", () => {
  expect(median([3, 1, 2])).toBe(2)
  expect(median([4, 1, 3, 2])).toBe(2.5)
  expect(median([])).toBeNaN()
})

it("percentile interpolates between the two nearest values", () => {
  const values = [10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0]
  expect(percentile(values, 0.1)).toBe(1)
  expect(percentile(values, 0.9)).toBe(9)
  expect(percentile([1, 2], 0.1)).toBeCloseTo(1.1)
  expect(percentile([1, 2], 0.9)).toBeCloseTo(1.9)
  expect(percentile([7], 0.9)).toBe(7)
  expect(percentile([], 0.5)).toBeNaN()
})

it("pairedRatios divides the two values of each round", () => {
  expect(pairedRatios([2, 9], [1, 3])).toEqual([2, 3])
})

it("rotated moves the members by one place in each round", () => {
  expect([0, 1, 2].map((round) => rotated(["a", "b"], round))).toEqual([
    ["a", "b"],
    ["b", "a"],
    ["a", "b"],
  ])
})
