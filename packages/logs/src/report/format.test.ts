import { describe, expect, it } from "vitest"
import { alignedRatio, ratio, shownName, time, visible } from "./format.ts"

describe("numbers", () => {
  it("contain a unit, and as many digits as needed", () => {
    expect([ratio(1.5), ratio(12), alignedRatio(1.5), alignedRatio(1_234)]).toEqual([
      "1.5×",
      "12×",
      "1.50×",
      "1,234.00×",
    ])
  })
})

describe("times", () => {
  it("are in UTC", () => {
    expect(time(Date.UTC(2026, 0, 31, 14, 5, 9, 999))).toBe("2026-01-31 14:05:09")
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
    // `encodeURIComponent` throws for half of a character.
    expect(encodeURIComponent(shownName(`x${"\u{1F600}".repeat(99)}y`))).toMatch(/^x%F0/)
  })
})
