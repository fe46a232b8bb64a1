import { describe, expect, it } from "vitest"
import type { OutputLine } from "./line.ts"
import { type TopAnswer, topLines } from "./top-table.ts"

// test/cli/top.test.ts runs the command against a service.

const AT_MS = 1_796_050_000_000
const DAY_MS = 86_400_000
const NONE = { admitted: [], refused: [], shadowed: [], overLimit: [] }
const RULE = { rule: "calls", shadow: false, refusedClients: 0, seconds: NONE }
const CLIENT = { rule: "calls", key: "ada", shadow: false, refusals: 3, error: 0, reason: "quota" }

function shown(answer: Partial<TopAnswer>, width = 120): readonly string[] {
  return topLines(answerWith(answer), width).map((line) => linesText(line))
}

function answerWith(answer: Partial<TopAnswer>): TopAnswer {
  return { service: "shop", atMs: `${AT_MS}`, sinceMs: `${AT_MS}`, rules: [RULE], refused: [], ...answer }
}

function linesText(line: OutputLine): string {
  if (typeof line === "string") return line
  return "text" in line
    ? line.text
    : line.map((piece) => (typeof piece === "string" ? piece : piece.text)).join("")
}

function clientLine(client: object): string {
  const times = { lastMs: `${AT_MS}`, untilMs: `${AT_MS}` }
  return shown({ refused: [{ ...CLIENT, ...times, ...client }] }).at(-1) ?? ""
}

describe("the tables of sluice clients top", () => {
  it.each([
    [0, "0 s"],
    [119_000, "119 s"],
    [120_000, "2 min"],
    [7_199_000, "120 min"],
    [3 * 3_600_000, "3 h"],
    [4 * DAY_MS, "4 d"],
  ])("express %d ms in the largest unit", (ms, text) => {
    expect(shown({ sinceMs: `${AT_MS - ms}` })[0]).toContain(`recorded for ${text}`)
    expect(clientLine({ lastMs: `${AT_MS - ms}` })).toContain(`${text} ago`)
  })

  it.each([
    [{}, "now"],
    [{ untilMs: `${AT_MS + 60_000}` }, "in 60 s"],
    [{ untilMs: undefined }, "never"],
  ])("say when a client may try again: %o", (client, text) => {
    expect(clientLine(client)).toMatch(new RegExp(`  ${text}$`))
  })

  it.each([
    [{ refusals: 1_200, error: 200 }, "1,000–1,200"],
    [{ reason: "in-flight" }, "too many in flight"],
    [{ reason: "store-failure" }, "store-failure"],
    [{ reason: "penalty" }, "blocked: penalty"],
    [{ key: "" }, "every client"],
    [{ shadow: true }, "calls (shadow)"],
  ])("show %o", (client, text) => {
    expect(clientLine(client)).toContain(text)
  })

  it("say that no rule has decided, or that no client was refused", () => {
    expect(shown({ rules: [] })[1]).toBe("no rule has decided a request yet")
    expect(linesText(topLines(answerWith({ rules: [] }), 120, "cals")[1] ?? "")).toBe(
      'rule "cals" has not decided a request yet',
    )
    expect(shown({}).at(-1)).toBe("no client was refused in the last 5 to 10 minutes")
  })

  it("name at most eight rules, and say that there are more", () => {
    const rules = Array.from({ length: 11 }, (_, i) => ({ ...RULE, rule: `rule-${i}` }))
    const lines = shown({ rules })
    expect(lines.filter((line) => line.startsWith("rule-"))).toHaveLength(8)
    expect(lines).toContain("and more rules, which did not refuse more")
  })

  it("draw the refusals of each ten seconds, also of a shadow rule", () => {
    const refused = [...Array(10).fill(7), ...Array(9).fill(0), 1]
    const [, , line] = shown({ rules: [{ ...RULE, seconds: { ...NONE, refused } }] })
    expect(line).toContain("▁▁█▂")
    const [, , trial] = shown({ rules: [{ ...RULE, shadow: true, seconds: { ...NONE, shadowed: [5] } }] })
    expect(trial).toContain("▁▁█ ")
  })

  it("fit into a narrow terminal", () => {
    const refused = [{ ...CLIENT, key: "a".repeat(200), lastMs: `${AT_MS}` }]
    for (const line of shown({ refused }, 30)) expect([...line].length).toBeLessThanOrEqual(30)
  })

  it.each([
    [60, "198.51.100.123"],
    [80, "2001:db8:1234:5678::/64"],
  ])("show the whole client in %d columns: %s", (width, key) => {
    const times = { lastMs: `${AT_MS}`, untilMs: `${AT_MS + 600_000}` }
    const refused = [{ ...CLIENT, ...times, rule: "calls-per-client", reason: "in-flight", key }]
    expect(shown({ refused }, width).at(-1)).toContain(` ${key} `)
  })

  it("quote a hash, and keep a client from becoming an option of the command into which it is pasted", () => {
    expect(clientLine({ key: "#-FPrQbunCoUkxtTAz0s2Wn" })).toContain("  '#-FPrQbunCoUkxtTAz0s2Wn'  ")
    expect(clientLine({ key: "--redis=redis://x" })).toContain("  -- '--redis=redis://x'  ")
    expect(clientLine({ key: "@3:ada2:-x" })).toContain("  -- ada '-x'  ")
  })
})
