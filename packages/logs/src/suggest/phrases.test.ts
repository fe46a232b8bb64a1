import { describe, expect, it } from "vitest"
import { clientsText, effectText, logText, nextText, shortened } from "./phrases.ts"
import type { SuggestCandidate } from "./result.ts"

describe("the phrases of a suggestion", () => {
  it("show numbers of clients, with the error of an estimate", () => {
    expect(clientsText({ value: 1, error: 0 })).toBe("1 client")
    expect(clientsText({ value: 2_000, error: 0 })).toBe("2,000 clients")
    expect(clientsText({ value: 1, error: 0.2 })).toBe("1 ± 1 clients")
  })

  it("shorten long names, and replace an empty name", () => {
    expect(shortened("")).toBe("(no name)")
    expect(shortened("a".repeat(61))).toBe(`${"a".repeat(60)}…`)
  })

  it("show the name of the log, its days and its length", () => {
    const file = { name: "a.log", format: "combined", lines: 5 }
    const rest = {
      lines: 5,
      requests: 5,
      unparsed: 0,
      skipped: 0,
      late: 0,
      tooManyRequests: 0,
      resolutionMs: 1,
    }
    const from = Date.UTC(2025, 5, 3)
    expect(logText({ ...rest, files: [file], from, to: from + 60_000 })).toBe("a.log, 2025-06-03, 1 min")
    expect(logText({ ...rest, files: [file, file], from, to: from + 86_400_000 })).toBe(
      "2 files, 2025-06-03 to 2025-06-04, 1 d",
    )
  })

  it("describe the effect that a limit would have had", () => {
    const candidate: SuggestCandidate = {
      ...{ name: "tight", limit: 60, clients: { value: 1, error: 0 }, clientShare: 0.01, isRule: true },
      ...{ requests: null, requestShare: null, nextPeak: 90 },
    }
    expect(effectText(candidate, "minute")).toBe(
      "60 per minute would have refused 1 client (1.0%); the next larger client reaches 90 (1.50x).",
    )
    expect(
      effectText({ ...candidate, requests: { value: 7, error: 0 }, requestShare: 0.5 }, "minute"),
    ).toContain(" and 7 requests (50.0%); ")
    expect(nextText(60, null)).toBe("no client is above it")
  })
})
