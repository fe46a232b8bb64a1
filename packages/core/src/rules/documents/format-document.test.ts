import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { InvalidRuleError } from "../../ground/errors.ts"
import { parseRules } from "../parsing/parse-rule.ts"
import { RULE_MEMBERS } from "../parsing/rule-members.ts"
import type { Rule, StorableRule } from "../rule.ts"
import { goodRules } from "../testing/good-rules.ts"
import type { Throttle } from "../throttle.ts"
import { formatRuleDocument } from "./format-document.ts"
import { parseRuleDocument } from "./rule-document.ts"

const rulesOf = (...rules: StorableRule[]): unknown => formatRuleDocument("checkout", rules).rules

test("formatRuleDocument writes rules with the names and the order of stored documents", () => {
  const rules: StorableRule[] = [
    {
      rejectionMessage: "retry-with-exponential-backoff",
      window: "1 minute",
      limit: 5,
      field: "user_id",
      name: "per-user",
    },
    { name: "daily", limit: 10, window: 86_400_000, rejectionMessage: "exhausted-daily-limit" },
  ]
  expect(JSON.stringify(formatRuleDocument("checkout", rules, 7))).toBe(
    JSON.stringify({
      service_id: "checkout",
      version: 7,
      rules: [
        {
          name: "per-user",
          field: "user_id",
          rate: { requests_per_unit: 5, unit: "minute" },
          request_rejection_message: "retry-with-exponential-backoff",
        },
        {
          name: "daily",
          rate: { requests_per_unit: 10, unit: "day" },
          request_rejection_message: "exhausted-daily-limit",
        },
      ],
    }),
  )
})

test.each([
  ["60s", { rate: { requests_per_unit: 5, unit: "minute" } }],
  [1_000, { rate: { requests_per_unit: 5, unit: "second" } }],
  ["1h", { rate: { requests_per_unit: 5, unit: "hour" } }],
  ["7 days", { rate: { requests_per_unit: 5, unit: "week" } }],
  ["15m", { limit: 5, window: "15 minutes" }],
  ["336h", { limit: 5, window: "2 weeks" }],
  [90_000, { limit: 5, window: "90 seconds" }],
  ["1500ms", { limit: 5, window: 1_500 }],
])("formatRuleDocument writes a window of %s as %j", (window, stored) => {
  expect(rulesOf({ limit: 5, window })).toEqual([stored])
})

test("formatRuleDocument writes concurrent and hold in place of a rate", () => {
  const rule: StorableRule = { hold: 90_000, concurrent: 5, cost: 2, field: "ip" }
  expect(JSON.stringify(rulesOf(rule))).toBe('[{"field":"ip","concurrent":5,"hold":"90 seconds","cost":2}]')
  expect(rulesOf({ concurrent: 5 })).toEqual([{ concurrent: 5 }])
})

test.each([
  ["07", 7],
  [7, 7],
  ["2026-01-31", "2026-01-31"],
  [new Date("2026-01-31T23:00:00Z"), "2026-01-31"],
])("formatRuleDocument writes per in place of a rate, and the anchor %o as %j", (anchor, stored) => {
  const rule: StorableRule = { anchor, timeZone: "Europe/Berlin", per: "month", limit: 5, field: "ip" }
  expect(JSON.stringify(rulesOf(rule))).toBe(
    `[{"field":"ip","limit":5,"per":"month","time_zone":"Europe/Berlin","anchor":${JSON.stringify(stored)}}]`,
  )
})

test("formatRuleDocument writes a throttle in snake_case, after the algorithm and its options", () => {
  const throttle: Throttle = { kind: "queue", maxWaitMs: 50, maxWaiting: 7 }
  expect(
    JSON.stringify(rulesOf({ limit: 5, window: "1m", throttle, burst: 9, algorithm: "leaky-bucket" })),
  ).toBe(
    '[{"rate":{"requests_per_unit":5,"unit":"minute"},"algorithm":"leaky-bucket","burst":9,' +
      '"throttle":{"kind":"queue","max_waiting":7,"max_wait_ms":50}}]',
  )
  const soft: Throttle = { kind: "soft", queue: { maxWaitMs: 50, maxWaiting: 7 }, percent: 5 }
  expect(JSON.stringify(rulesOf({ limit: 50, window: "1m", throttle: soft }))).toContain(
    '"throttle":{"kind":"soft","percent":5,"queue":{"max_waiting":7,"max_wait_ms":50}}',
  )
  // Equivalent throttles have one spelling.
  expect(rulesOf({ limit: 5, window: 5, throttle: { kind: "hard" } })).toEqual([
    { limit: 5, window: 5, throttle: "hard" },
  ])
})

test("formatRuleDocument writes a penalty's durations like windows, and a list of one duration as this duration", () => {
  const penalty = { refusals: 5, within: 60_000, for: ["900s"] }
  expect(rulesOf({ field: "ip", limit: 5, window: 5, penalty })).toMatchObject([
    { penalty: { refusals: 5, within: "1 minute", for: "15 minutes" } },
  ])
})

test("formatRuleDocument writes an override without a burst as its limit", () => {
  const overrides = { ann: { limit: 7, burst: undefined }, bob: { burst: 9, limit: 8 } }
  expect(
    JSON.stringify(rulesOf({ field: "u", limit: 5, window: 5, algorithm: "token-bucket", overrides })),
  ).toContain('"overrides":{"ann":7,"bob":{"limit":8,"burst":9}}')
})

test("formatRuleDocument omits undefined members, also inside match, and an undefined version", () => {
  const rule: StorableRule = {
    name: undefined,
    limit: 5,
    window: 5,
    shadow: undefined,
    match: { path: "/", methods: undefined },
  }
  expect(formatRuleDocument("a", [rule])).toStrictEqual({
    service_id: "a",
    rules: [{ limit: 5, window: 5, match: { path: "/" } }],
  })
})

describe("formatRuleDocument", () => {
  const problems = (service: unknown, rules: unknown, version?: unknown): unknown => {
    try {
      formatRuleDocument(service as string, rules as Rule[], version as number)
      return []
    } catch (error) {
      if (!(error instanceof InvalidRuleError)) throw error
      return error.problems.map(({ path, message }) => `${path}: ${message}`)
    }
  }
  test.each([
    [
      "",
      [{ limit: 0, window: "1m" }],
      -1,
      [
        'service_id: "" is not a service id',
        "version: -1 is not a version",
        "rules[0].limit: 0 is not a limit",
      ],
    ],
    ["x".repeat(257), [], undefined, [expect.stringContaining("service_id: ")]],
    [7, [], 1.5, ["service_id: 7 is not a service id", "version: 1.5 is not a version"]],
    ["a", "rules", undefined, [expect.stringContaining("not a list of rules")]],
    [
      "a",
      [
        { limit: 5, per: "month", anchor: () => 1 },
        { limit: 5, window: () => "1m", name: "b" },
      ],
      0,
      ["anchor", "window"].map(
        (name, at) => `rules[${at}].${name}: is a function, and functions cannot be stored`,
      ),
    ],
    [
      "a",
      [{ limit: 5, window: "1m", throttle: { kind: "elastic", signal: () => true } }],
      0,
      ["rules[0].throttle.signal: is a function, and functions cannot be stored"],
    ],
    [
      "a",
      [null, { limit: () => 1, window: "1m" }, { concurrent: () => 1 }],
      0,
      [
        expect.stringContaining("rules[0]: null"),
        "rules[1].limit: is a function, and functions cannot be stored",
        "rules[2].concurrent: is a function, and functions cannot be stored",
      ],
    ],
  ])(
    "reports every problem of the service %j, the rules %j and the version %j",
    (service, rules, version, expected) => {
      expect(problems(service, rules, version)).toEqual(expected)
    },
  )
})

describe("a written document", () => {
  const compiled = (rules: readonly Rule[]): unknown => parseRules(rules, "rules")

  test("is read back as the same rules, whatever options they have", () => {
    const seen = new Set<string>()
    fc.assert(
      fc.property(goodRules, (rules) => {
        for (const each of rules) {
          for (const [name, value] of Object.entries(each)) if (value !== undefined) seen.add(name)
        }
        const stored = formatRuleDocument("checkout", rules, 3)
        expect(compiled(parseRuleDocument(JSON.parse(JSON.stringify(stored))))).toEqual(compiled(rules))
      }),
      { numRuns: 300 },
    )
    // This check fails if the generator lacks a new member.
    expect([...seen].sort()).toEqual(Object.keys(RULE_MEMBERS).sort())
  })

  test("is the same when it is written again after reading, and contains no older spelling", () => {
    fc.assert(
      fc.property(goodRules, (rules) => {
        const stored = formatRuleDocument("checkout", rules, 3)
        expect(JSON.stringify(formatRuleDocument("checkout", parseRuleDocument(stored), 3))).toBe(
          JSON.stringify(stored),
        )
        expect(JSON.stringify(stored)).not.toMatch(/"(errorMessage|requestsPerUnit|onMissing|maxWait)/)
      }),
      { numRuns: 300 },
    )
  })
})
