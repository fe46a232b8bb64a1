import { describe, expect, it } from "vitest"
import { count, counted, duration, percent } from "./quantities.ts"

describe("quantities", () => {
  it("contain separators and nouns", () => {
    expect([count(2_000_000), counted(1, "client"), counted(2_300, "client")]).toEqual([
      "2,000,000",
      "1 client",
      "2,300 clients",
    ])
  })

  it.each([
    [0, 0, "–"],
    [0, 5, "0%"],
    [1, 2_000_000, "<0.01%"],
    [23, 158_659, "0.01%"],
    [308_830, 2_000_000, "15.4%"],
    [9_999, 10_000, "99.99%"],
    [999_999, 1_000_000, ">99.99%"],
    [7, 7, "100%"],
  ])("show %i of %i as %s", (part, whole, expected) => {
    expect(percent(part, whole)).toBe(expected)
  })

  it.each([
    [0, "0 s"],
    [1, "1 ms"],
    [1_000, "1 s"],
    [300_000, "5 min"],
    [10_020_000, "2 h 47 min"],
    [90_000_000, "1 d 1 h"],
  ])("show a duration of %i ms as %s", (ms, expected) => {
    expect(duration(ms)).toBe(expected)
  })
})
