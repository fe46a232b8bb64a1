import { beforeAll, expect, it } from "vitest"
import { answer, countTo, isBetween, twice, withName } from "./sources.ts"

let four = 0
let runs = 0

beforeAll(() => {
  four = twice(2)
})

it("is between", () => {
  expect(isBetween(1, 1, 3)).toBe(true)
  expect(isBetween(0, 1, 3)).toBe(false)
  expect(isBetween(2, 1, 3)).toBe(true)
})

it("counts", () => {
  expect(countTo(3)).toBe(3)
})

it("answers", async () => {
  expect(await new Promise((resolve) => answer(resolve))).toBe(1)
})

it("has made four before", () => {
  expect(four).toBe(4)
})

it("cannot be run again", () => {
  runs++
  expect([runs, isBetween(4, 1, 3)]).toEqual([1, false])
})

it("has a name for a while", () => {
  const called: string[] = []
  withName("a", () => called.push("a"))
  withName("a", () => called.push("b"))
  expect(called).toEqual(["a", "b"])
})
