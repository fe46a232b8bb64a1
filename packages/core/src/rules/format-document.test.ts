import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { InvalidRuleError } from "../errors.ts"
import { ruleDocument } from "./document-schema.ts"
import { formatRuleDocument } from "./format-document.ts"
import { parseRules, RULE_MEMBERS } from "./parse-rule.ts"
import type { Rule, RuleMatch, Throttle } from "./rule.ts"
import { parseRuleDocument } from "./rule-document.ts"

const rulesOf = (...rules: Rule[]): unknown => formatRuleDocument("checkout", rules).rules

test("writes the document of the contract", () => {
  const rules: Rule[] = [
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
])("writes a window of %s as %j", (window, stored) => {
  expect(rulesOf({ limit: 5, window })).toEqual([stored])
})

test("writes a throttle in snake_case, and each algorithm's members after it", () => {
  const throttle: Throttle = { kind: "queue", maxWaitMs: 50, maxWaiting: 7 }
  expect(
    JSON.stringify(rulesOf({ limit: 5, window: "1m", throttle, burst: 9, algorithm: "leaky-bucket" })),
  ).toBe(
    '[{"rate":{"requests_per_unit":5,"unit":"minute"},"algorithm":"leaky-bucket","burst":9,' +
      '"throttle":{"kind":"queue","max_waiting":7,"max_wait_ms":50}}]',
  )
  // One spelling of what means the same.
  expect(rulesOf({ limit: 5, window: 5, throttle: { kind: "hard" } })).toEqual([
    { limit: 5, window: 5, throttle: "hard" },
  ])
})

test("leaves out what is undefined, also inside of match, and the version when there is none", () => {
  const rule: Rule = {
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

describe("refuses, with every problem", () => {
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
      [{ limit: 5, window: "1m", throttle: { kind: "elastic", signal: () => true } }],
      0,
      ["rules[0].throttle.signal: is a function, which can only be in code and not be stored"],
    ],
    [
      "a",
      [null, { limit: () => 1, window: "1m" }],
      0,
      [
        expect.stringContaining("rules[0]: null"),
        "rules[1].limit: is a function, which can only be in code and not be stored",
      ],
    ],
  ])("%j %j %j", (service, rules, version, expected) => {
    expect(problems(service, rules, version)).toEqual(expected)
  })
})

const text = fc.string({ minLength: 1, maxLength: 12, unit: "grapheme" })
const field = fc.constantFrom("ip", "user_id", "header:X-Key", "query:q", "body:user.email", "route")
const optional = <T>(values: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> =>
  fc.option(values, { nil: undefined, freq: 2 })
const match: fc.Arbitrary<RuleMatch> = fc.record({
  methods: optional(fc.array(fc.constantFrom("GET", "post", "PURGE"), { minLength: 1, maxLength: 3 })),
  path: optional(fc.constantFrom("/", "/users/:id", "/files/*path", "/A%20b")),
  fields: optional(fc.dictionary(field, fc.array(text, { minLength: 1, maxLength: 3 }), { maxKeys: 2 })),
})
/** Each algorithm with the members that it uses. */
const counting: fc.Arbitrary<Partial<Rule>> = fc.oneof(
  fc.record({
    algorithm: optional(fc.constant("sliding-window" as const)),
    buckets: optional(fc.integer({ min: 2, max: 360 })),
  }),
  fc.record({
    algorithm: fc.constant("sliding-window-strict" as const),
    buckets: optional(fc.integer({ min: 2, max: 360 })),
  }),
  fc.record({ algorithm: fc.constant("sliding-log" as const) }),
  fc.record({
    algorithm: fc.constant("fixed-window" as const),
    align: optional(fc.constantFrom("epoch", "first-hit")),
  }),
  fc.record({
    algorithm: fc.constant("token-bucket" as const),
    burst: optional(fc.integer({ min: 1, max: 1_000 })),
    refill: optional(fc.constantFrom("continuous", "periodic")),
  }),
  fc.record({
    algorithm: fc.constant("leaky-bucket" as const),
    burst: optional(fc.integer({ min: 1, max: 1_000 })),
  }),
)
const throttle: fc.Arbitrary<Throttle> = fc.oneof(
  fc.constant("hard" as const),
  fc.record({ kind: fc.constant("hard" as const) }),
  fc.record({ kind: fc.constant("soft" as const), percent: fc.constantFrom(0.5, 5, 33.3, 1000) }),
  fc.record({ kind: fc.constant("elastic" as const), ceiling: optional(fc.constant(6_000_000_000)) }),
  fc.record({
    kind: fc.constant("queue" as const),
    maxWaiting: optional(fc.integer({ min: 1, max: 500 })),
    maxWaitMs: optional(fc.integer({ min: 1, max: 60_000 })),
  }),
)
const common = fc.record({
  name: optional(fc.constantFrom("a", "per user", "x".repeat(64))),
  limit: fc.oneof(fc.integer({ min: 1, max: 1_000_000 }), fc.constant(5_000_000_000)),
  window: fc.oneof(
    fc.integer({ min: 1, max: 1_300_000_000 }),
    fc.constantFrom(1_000, 60_000, 604_800_000, "1 minute", "15m", "1.5 hours", "2 weeks", "day"),
  ),
  field: optional(
    fc.oneof(
      field,
      fc.constant("service"),
      fc.uniqueArray(fc.constantFrom("ip", "user_id", "route"), { minLength: 1 }),
    ),
  ),
  onMissing: optional(fc.constantFrom("ip", "skip", "deny", "shared")),
  throttle: optional(throttle),
  countRejected: optional(fc.boolean()),
  penalty: optional(
    fc.record({
      refusals: fc.integer({ min: 1, max: 1_000 }),
      within: optional(fc.constantFrom(1, 60_000, "90 seconds", "1 day")),
      for: fc.constantFrom(1_500, "15m", "2 weeks"),
    }),
  ),
  cost: optional(fc.integer({ min: 1, max: 9 })),
  match: optional(match),
  allow: optional(fc.array(fc.oneof(text, fc.constantFrom("10.0.0.0/8", "::1")), { maxLength: 3 })),
  deny: optional(fc.array(fc.oneof(text, fc.constant("192.0.2.7")), { maxLength: 3 })),
  rejectionMessage: optional(fc.oneof(text, fc.constant("exhausted-daily-limit"))),
  shadow: optional(fc.boolean()),
  onStoreFailure: optional(fc.constantFrom("local", "allow", "deny")),
} satisfies { [K in Exclude<keyof Required<Rule>, Counting>]: fc.Arbitrary<Rule[K]> })
type Counting = "algorithm" | "align" | "buckets" | "burst" | "refill"
const rule: fc.Arbitrary<Rule> = fc.tuple(common, counting).map(([one, other]) => ({ ...one, ...other }))

describe("what is written is read back", () => {
  const valid = fc
    .array(rule, { maxLength: 4 })
    .map((rules) => rules.filter((each) => parseRules([each], "").problems.length === 0))
    .filter((rules) => parseRules(rules, "rules").problems.length === 0)
  const compiled = (rules: readonly Rule[]): unknown => parseRules(rules, "rules")

  test("as the same rules, whatever their members", () => {
    const seen = new Set<string>()
    fc.assert(
      fc.property(valid, (rules) => {
        for (const each of rules) {
          for (const [name, value] of Object.entries(each)) if (value !== undefined) seen.add(name)
        }
        const stored = formatRuleDocument("checkout", rules, 3)
        expect(compiled(parseRuleDocument(JSON.parse(JSON.stringify(stored))))).toEqual(compiled(rules))
      }),
      { numRuns: 1_000 },
    )
    // Else a member that is new would go unnoticed here.
    expect([...seen].sort()).toEqual([...RULE_MEMBERS].sort())
  })

  test("and written again as the same document, in present spellings alone", () => {
    fc.assert(
      fc.property(valid, (rules) => {
        const stored = formatRuleDocument("checkout", rules, 3)
        expect(JSON.stringify(formatRuleDocument("checkout", parseRuleDocument(stored), 3))).toBe(
          JSON.stringify(stored),
        )
        expect(ruleDocument.safeParse(stored).success).toBe(true)
        expect(JSON.stringify(stored)).not.toMatch(/"(errorMessage|requestsPerUnit|onMissing|maxWait)/)
      }),
      { numRuns: 300 },
    )
  })
})
