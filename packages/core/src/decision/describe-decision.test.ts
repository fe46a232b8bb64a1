import { describe, expect, it } from "vitest"
import { InvalidOptionError } from "../ground/errors.ts"
import type { Decision, PolicyCheck } from "./decision.ts"
import { DENIED_WITHOUT_RULES, DecisionRecord, UNLIMITED } from "./decision-record.ts"
import { explainDecision, logFields } from "./describe-decision.ts"

const MINUTE = 60_000
const START_MS = 1_750_000_020_000

/** A check that a rule of 10 a minute admits. 7 units are used, and 3 of them are carried over. */
const admitted: PolicyCheck = {
  policy: "per-user",
  unit: "requests",
  algorithm: "sliding-window",
  limit: 10,
  windowMs: MINUTE,
  remaining: 3,
  cost: 1,
  allowed: true,
  retryAfterMs: 0,
  nextUnitAfterMs: 2_000,
  resetAfterMs: 80_000,
  delayMs: 0,
  overLimit: false,
  shadow: false,
  counts: { startMs: START_MS, current: 4, previous: 6 },
  ageMs: 0,
}
const refused: PolicyCheck = {
  ...admitted,
  ...{ allowed: false, remaining: 0, refusal: "quota", retryAfterMs: 24_583, nextUnitAfterMs: 24_583 },
  counts: { startMs: START_MS, current: 7, previous: 6 },
}

function decisionOf(...checks: readonly PolicyCheck[]): Decision {
  return new DecisionRecord(checks, false, undefined)
}

function textOf(check: Partial<PolicyCheck>, options?: { readonly atMs: number }): string | undefined {
  return explainDecision(decisionOf({ ...refused, ...check }), options)[0]?.text
}

describe("explainDecision", () => {
  it("says how many units are used, and when the next unit is available", () => {
    expect(explainDecision(decisionOf(refused))).toEqual([
      {
        policy: "per-user",
        verdict: "refused",
        text:
          "per-user refused the request: 10 of 10 units are used, 3 of them carried over from the previous minute; " +
          "the next unit is available in 24.6 s",
      },
    ])
    expect(explainDecision(decisionOf(admitted))).toEqual([
      {
        policy: "per-user",
        verdict: "admitted",
        text: "per-user admitted the request: 7 of 10 units are used, 3 of them carried over from the previous minute",
      },
    ])
  })

  it.each([
    ["a window of one second", { windowMs: 1_000 }, "from the previous second"],
    ["a window of an hour", { windowMs: 60 * MINUTE }, "from the previous hour"],
    ["a window of a day", { windowMs: 1_440 * MINUTE }, "from the previous day"],
    ["a window of another length", { windowMs: 90_000 }, "from the previous window"],
    ["a single carried-over unit", { counts: { startMs: START_MS, current: 9, previous: 6 } }, "1 of them"],
  ])("mentions the previous window for %s", (_name, check, part) => {
    expect(textOf(check)).toContain(part)
  })

  it.each([
    ["fixed-window", { startMs: START_MS, current: 10, previous: 0 }],
    ["sliding-window", { startMs: START_MS, current: 10, previous: 0 }],
    ["sliding-log", { startMs: START_MS, current: 10, previous: 0, parts: "!!!" }],
    ["sliding-window-strict", { startMs: START_MS, current: 1, previous: 9, parts: "!!!" }],
  ] as const)(
    "does not mention the previous window under %s if no units are carried over",
    (algorithm, counts) => {
      expect(textOf({ algorithm, counts })).toBe(
        "per-user refused the request: 10 of 10 units are used; the next unit is available in 24.6 s",
      )
    },
  )

  it("computes the carried-over units for the time that is passed as atMs", () => {
    // Half a minute later, half of the 6 units still count, although the limit has since been lowered to 5.
    const cut = { limit: 5, counts: { startMs: START_MS, current: 4, previous: 6 } }
    expect(textOf(cut, { atMs: START_MS + 30_000 })).toBe(
      "per-user refused the request: 7 of 5 units are used, 3 of them carried over from the previous minute; " +
        "the next unit is available in 24.6 s, at 2025-06-15T15:07:54.583Z",
    )
  })

  it("states the remaining units of a bucket instead of its used units", () => {
    const bucket = {
      algorithm: "token-bucket",
      counts: { startMs: START_MS, current: 10, previous: 3 },
    } as const
    expect(textOf(bucket)).toBe(
      "per-user refused the request: 0 units are left; the next unit is available in 24.6 s",
    )
    expect(textOf({ ...admitted, ...bucket, remaining: 1 })).toBe(
      "per-user admitted the request: 1 unit is left",
    )
  })

  it("states how many units a request needs if it needs more than one", () => {
    expect(textOf({ cost: 5, remaining: 3, counts: { startMs: START_MS, current: 7, previous: 0 } })).toBe(
      "per-user refused the request: 7 of 10 units are used; the 5 units that it needs are available in 24.6 s",
    )
  })

  it("names the unit that a rule counts", () => {
    expect(textOf({ unit: "tokens", counts: { startMs: START_MS, current: 10, previous: 0 } })).toBe(
      "per-user refused the request: 10 of 10 tokens are used; the next token is available in 24.6 s",
    )
    expect(textOf({ unit: "tokens", refusal: "cost", cost: 12, retryAfterMs: Infinity })).toBe(
      "per-user refused the request: it costs 12 tokens, more than the rule can ever grant",
    )
  })

  it.each([
    ["penalty", {}, "the client was refused too often and is blocked for 24.6 s"],
    ["blocked", {}, "an operator has blocked the client for 24.6 s"],
    ["cost", { cost: 12, retryAfterMs: Infinity }, "it costs 12 units, more than the rule can ever grant"],
    ["denied", { retryAfterMs: Infinity }, "the rule's deny list has the client"],
    ["missing-field", { field: "user_id", retryAfterMs: Infinity }, 'the field "user_id" is missing'],
    ["store-failure", {}, "its limit function has failed, and has not returned a limit before"],
  ] as const)("explains a refusal with the reason %s", (refusal, more, part) => {
    expect(textOf({ refusal, ...more })).toBe(`per-user refused the request: ${part}`)
  })

  it.each([
    [0.2, "1 ms"],
    [999, "999 ms"],
    [1_000, "1 s"],
    [59_901, "60 s"],
    [60_000, "1 min"],
    [61_001, "1 min 2 s"],
    [3_540_001, "1 h"],
    [3_599_999, "1 h"],
    [3_600_000, "1 h"],
    [5_000_000, "1 h 24 min"],
    [90_000_000, "1 d 1 h"],
  ])("rounds a wait of %d ms up to %s", (retryAfterMs, text) => {
    expect(textOf({ retryAfterMs })).toMatch(new RegExp(`available in ${text}$`))
  })

  it("says whether a request is delayed, above the limit, or decided from a cached count", () => {
    const text = (more: Partial<PolicyCheck>) =>
      explainDecision(decisionOf({ ...admitted, ...more }))[0]?.text
    expect(text({ delayMs: 300 })).toMatch(/; the request waits 300 ms for its turn$/)
    expect(text({ overLimit: true })).toMatch(/; the request is above the limit but was admitted$/)
    expect(text({ ageMs: 40 })).toMatch(/; the count is 40 ms old$/)
  })

  it("explains shadow rules and counters that were not read", () => {
    const decision = decisionOf(
      refused,
      { ...refused, policy: "trial", shadow: true },
      { ...admitted, policy: "other", remaining: undefined, counts: undefined as never },
    )
    expect(explainDecision(decision).map(({ verdict }) => verdict)).toEqual([
      "refused",
      "would-refuse",
      "not-read",
    ])
    expect(explainDecision(decision)[1]?.text).toMatch(
      /^trial would have refused the request: 10 of 10 units/,
    )
    expect(explainDecision(decision)[2]?.text).toBe(
      "other was not read, because another rule had already refused the request",
    )
  })

  it("explains decisions that no rule made", () => {
    expect(explainDecision(UNLIMITED)).toEqual([
      { policy: "", verdict: "admitted", text: "No rule applies to the request" },
    ])
    expect(explainDecision(DENIED_WITHOUT_RULES)).toEqual([
      {
        policy: "",
        verdict: "refused",
        text: "The request was refused, because no rules have been loaded yet",
      },
    ])
  })

  it("says whether a decision was made without the store, or because of another request of its group", () => {
    const degraded = new DecisionRecord([admitted], true, undefined)
    const { counts: _, ...uncounted } = refused
    const closed = new DecisionRecord([{ ...uncounted, refusal: "store-failure" }], true, undefined)
    expect(explainDecision(closed)[0]?.text).toBe(
      "per-user refused the request: the store did not respond, and the rule refuses requests without it",
    )
    expect(explainDecision(degraded)[0]?.text).toMatch(
      /; the store did not respond, so only this process counted$/,
    )
    const held = DecisionRecord.refusedByGroup(decisionOf(admitted), 500)
    expect(explainDecision(held).at(-1)).toEqual({
      policy: "",
      verdict: "refused",
      text: "The request was refused, because another request of its group was refused",
    })
  })

  it("blames the group instead of missing rules if a request of a group was not decided", () => {
    const notAsked = { ...UNLIMITED, allowed: false, refusal: "group" } as const
    expect(explainDecision(notAsked)[0]?.text).toContain("another request of its group")
  })

  it("states the time at which a block ends or a unit is available again", () => {
    const at = { atMs: START_MS }
    expect(textOf({ refusal: "blocked" }, at)).toMatch(/ for 24.6 s, until 2025-06-15T15:07:24.583Z$/)
    expect(textOf({}, at)).toMatch(/ in 24.6 s, at 2025-06-15T15:07:24.583Z$/)
  })

  it("rejects a value that is not a decision", () => {
    for (const odd of [undefined, null, 5, {}, { checks: 5 }, { checks: [null] }]) {
      expect(() => explainDecision(odd as never)).toThrow(InvalidOptionError)
      expect(() => logFields(odd as never)).toThrow(InvalidOptionError)
    }
    expect(() => explainDecision(UNLIMITED, { atMs: "now" as never })).toThrow(InvalidOptionError)
  })
})

describe("logFields", () => {
  it("returns the fields that a log line needs, but no key of the client", () => {
    expect(logFields(decisionOf(admitted))).toStrictEqual({
      ratelimit: { policy: "per-user", allowed: true, remaining: 3, limit: 10 },
    })
    expect(logFields(decisionOf({ ...refused, policy: "trial", shadow: true }, refused))).toStrictEqual({
      ratelimit: {
        policy: "per-user",
        allowed: false,
        remaining: 0,
        limit: 10,
        refusal: "quota",
        retryAfterMs: 24_583,
        shadowed: ["trial"],
      },
    })
  })

  it("returns null for numbers that JSON cannot represent", () => {
    const never = decisionOf({ ...refused, refusal: "denied", retryAfterMs: Number.POSITIVE_INFINITY })
    expect(logFields(never).ratelimit).toMatchObject({ retryAfterMs: null })
    expect(logFields(UNLIMITED)).toStrictEqual({
      ratelimit: { policy: "", allowed: true, remaining: null, limit: null },
    })
    for (const decision of [never, UNLIMITED]) {
      expect(JSON.parse(JSON.stringify(logFields(decision)))).toStrictEqual(logFields(decision))
    }
  })
})
