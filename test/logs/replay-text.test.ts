import { type ReplayResult, replayLines, replayReport } from "@sluice/logs"
import { describe, expect, it } from "vitest"
import { formatLine } from "../../packages/cli/src/line.ts"
import { largeResult } from "./replay-results.ts"

const textOf = (members: Partial<ReplayResult> = {}): string =>
  replayLines({ ...largeResult(), ...members }, { reorderedByMs: 1_500 })
    .map((line) => formatLine(line, false))
    .join("\n")

describe("the text of a replay", () => {
  it("shows the length of the log", () => {
    const { log } = largeResult()
    expect(textOf({ log: { ...log, from: 0, to: 10_020_000 } })).toContain(" lines, 2 h 47 min, ")
  })

  it("shows how far lines were moved, and how many lines were skipped", () => {
    const { log } = largeResult()
    const text = textOf({ log: { ...log, reordered: 7, skipped: 3 } })
    expect(text).toContain("7 lines reordered by up to 2 s")
    expect(text).toContain(", 3 skipped")
  })

  it("shows the first 20 clients, and names clients without an address", () => {
    const client = {
      rule: "per-ip",
      shadow: false,
      requests: 9,
      refused: 5,
      peak: 2,
      firstRefused: 0,
      lastRefused: 0,
    }
    const clients = Array.from({ length: 21 }, (_, at) => ({
      ...client,
      client: at === 0 ? "" : `192.0.2.${at}`,
    }))
    const text = textOf({ clients })
    expect(text).toContain("(no address)")
    expect(text).not.toContain("192.0.2.20")
    expect(text).toContain("--report and --json show more clients.")
  })

  it("shows the first 20 differences between the replay and the verdicts in the log", () => {
    const difference = { file: "a.log", line: 5, live: "admitted", replayed: "refused by per-ip" }
    const text = textOf({ live: { compared: 50, different: 30, differences: Array(25).fill(difference) } })
    expect(text).toContain("30 of 50 verdicts in the log differ from the replay")
    expect(text).toContain("10 more; --json has the first 10,000")
  })

  it("shows comparisons without changes", () => {
    const none = { requests: 0, clients: 0 }
    const text = textOf({
      against: { file: "old.yaml", newlyRefused: none, noLongerRefused: none, rules: [], clients: [] },
    })
    expect(text).toContain("compared with old.yaml:")
  })
})

describe("the report of a replay", () => {
  const report = (members: Partial<ReplayResult>) => replayReport({ ...largeResult(), ...members })

  it("shows problems first, and bounds that hold", () => {
    expect(report({ problems: ["no <request>"] })).toContain("&#60;request&#62;")
    const bound = { bound: "--max-refused 5", value: "3", holds: true }
    expect(report({ bounds: [bound] })).toContain("✓ holds")
    expect(report({ bounds: [bound, bound] })).toContain("✓ all hold")
  })

  it("shows how many verdicts differ from the verdicts in the log", () => {
    const live = { compared: 9, different: 0, differences: [] }
    expect(report({ live })).toContain("The replay agrees with all of them.")
    const difference = { file: "a.log", line: 5, live: "admitted", replayed: "refused by per-ip" }
    expect(report({ live: { compared: 9, different: 3, differences: [difference] } })).toContain(
      "The replay differs in 3 lines, of which the first 1 are here:",
    )
  })
})
