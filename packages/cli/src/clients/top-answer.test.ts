import type { RuleOverview, ServiceOverview } from "@sluice/dashboard"
import { describe, expect, it } from "vitest"
import { topAnswer } from "./top-answer.ts"

const AT_MS = 1_796_050_000_000.4
const REASON = { reason: "quota" } as const
const REFUSED = { ...REASON, refusals: 3, error: 0, lastMs: AT_MS - 5_000, untilMs: AT_MS + 60_000 }

function rule(name: string, more: Partial<RuleOverview>): RuleOverview {
  return {
    rule: name,
    shadow: false,
    seconds: {},
    slots: {},
    refused: [],
    refusedClients: 0,
    busy: [],
    ...more,
  }
}

const SERVICE: ServiceOverview = {
  service: "shop",
  instances: [
    { instance: "a", sinceMs: AT_MS - 9_000, atMs: AT_MS } as never,
    { instance: "b", sinceMs: AT_MS - 7_000, atMs: AT_MS } as never,
  ],
  rules: [
    rule("calls", {
      ...{ seconds: { admitted: [4], refused: [1, 2] }, slots: { refused: [3] }, refusedClients: 1 },
      ...{ refused: [{ ...REFUSED, key: "@3:ada3:pro" }], busy: [{ key: "ada", requests: 32 }] },
    }),
    rule("trial", {
      ...{ shadow: true, seconds: { shadowed: [9] }, busy: [{ key: "eve", requests: 64 }] },
      refused: [{ ...REFUSED, key: "#xdci6_VZaNZqi_WGyXPmsd", refusals: 9, untilMs: null }],
    }),
  ],
  refusals: [
    { rule: "calls", key: "", reason: "denied", text: "Denied.", atMs: AT_MS, retryAfterMs: null },
    { rule: "calls", key: "ada", reason: "quota", text: "Used up.", atMs: AT_MS, retryAfterMs: 60_000 },
  ],
}
const NONE = { admitted: [], refused: [], shadowed: [], overLimit: [], degraded: [] }

describe("the records of processes in the form of ListClients", () => {
  it("have 64-bit numbers as strings, and the rules and clients with the most refusals first", () => {
    const times = { lastMs: "1796049995001" }
    expect(topAnswer(SERVICE, AT_MS, {})).toEqual({
      ...{ service: "shop", atMs: "1796050000001", sinceMs: "1796049993001", instances: 2 },
      rules: [
        {
          ...{ rule: "trial", shadow: true, refusedClients: 0, seconds: { ...NONE, shadowed: [9] } },
          fiveMinutes: NONE,
        },
        {
          ...{ rule: "calls", shadow: false, refusedClients: 1 },
          seconds: { ...NONE, admitted: [4], refused: [1, 2] },
          fiveMinutes: { ...NONE, refused: [3] },
        },
      ],
      refused: [
        {
          ...{ rule: "trial", shadow: true, key: "#xdci6_VZaNZqi_WGyXPmsd", client: [] },
          ...{ refusals: 9, error: 0, reason: "quota", ...times },
        },
        {
          ...{ rule: "calls", shadow: false, key: "@3:ada3:pro", client: ["ada", "pro"] },
          ...{ refusals: 3, error: 0, reason: "quota", ...times, untilMs: "1796050060001" },
        },
      ],
      busiest: [
        { rule: "trial", key: "eve", client: ["eve"], requests: 64 },
        { rule: "calls", key: "ada", client: ["ada"], requests: 32 },
      ],
      refusals: [
        { rule: "calls", key: "", client: [], reason: "denied", text: "Denied.", atMs: "1796050000001" },
        {
          ...{ rule: "calls", key: "ada", client: ["ada"], reason: "quota", text: "Used up." },
          ...{ atMs: "1796050000001", retryAfterMs: "60000" },
        },
      ],
    })
  })

  it("contain only the rule and the number of entries that are asked for", () => {
    const { rules, refused, busiest, refusals } = topAnswer(SERVICE, AT_MS, { rule: "calls", limit: 1 })
    expect([rules, refused, busiest, refusals].map((list) => list.length)).toEqual([1, 1, 1, 1])
    expect([...rules, ...refused].map((each) => each.rule)).toEqual(["calls", "calls"])
  })

  it("begin now if nothing was recorded", () => {
    const nothing = { ...SERVICE, instances: [], rules: [], refusals: [] }
    const { atMs, sinceMs } = topAnswer(nothing, AT_MS, {})
    expect(sinceMs).toBe(atMs)
  })
})
