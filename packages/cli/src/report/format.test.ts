import { describe, expect, it } from "vitest"
import { alignedRatio, count, counted, duration, percent, ratio, shownName, time, visible } from "./format.ts"

describe("numbers", () => {
  it("have separators, units and as many digits as are needed", () => {
    expect([count(2_000_000), counted(1, "client"), counted(23, "client")]).toEqual([
      "2,000,000",
      "1 client",
      "23 clients",
    ])
    expect([ratio(1.5), ratio(12), alignedRatio(1.5), alignedRatio(1_234)]).toEqual([
      "1.5×",
      "12×",
      "1.50×",
      "1,234.00×",
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
  ])("shows %i of %i as %s", (part, whole, expected) => {
    expect(percent(part, whole)).toBe(expected)
  })
})

describe("times", () => {
  it("are in UTC", () => {
    expect(time(Date.UTC(2026, 0, 31, 14, 5, 9, 999))).toBe("2026-01-31 14:05:09")
  })

  it.each([
    [0, "0 s"],
    [1, "1 ms"],
    [1_000, "1 s"],
    [300_000, "5 min"],
    [10_020_000, "2 h 47 min"],
    [90_000_000, "1 d 1 h"],
  ])("shows a duration of %i ms as %s", (ms, expected) => {
    expect(duration(ms)).toBe(expected)
  })
})

describe("text from a log", () => {
  it("shows characters that are invisible or change the direction", () => {
    expect(visible("a\u202Eb\u200B\u0000\n\uD800\u{E0041}é\u{1F600}")).toBe(
      "a\\u202eb\\u200b\\u0000\\u000a\\ud800\\u{e0041}é\u{1F600}",
    )
  })

  it("shortens long names in the middle, and does not cut characters in half", () => {
    expect(shownName("x".repeat(120))).toBe("x".repeat(120))
    expect(shownName(`${"a".repeat(100)}${"b".repeat(9_880)}${"c".repeat(20)}`)).toBe(
      `${"a".repeat(100)} … ${"c".repeat(20)} (10,000 characters)`,
    )
    // This throws for half of a character.
    expect(encodeURIComponent(shownName(`x${"\u{1F600}".repeat(99)}y`))).toMatch(/^x%F0/)
  })
})
