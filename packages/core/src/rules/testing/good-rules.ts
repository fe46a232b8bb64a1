import fc from "fast-check"
import type { CalendarPeriod } from "../../ground/calendar.ts"
import { parseCodeRules } from "../parsing/parse-rule.ts"
import type { InFlightRule, RateRule, Rule, RuleMatch, RulePenalty } from "../rule.ts"
import type { Throttle } from "../throttle.ts"

const text = fc.string({ minLength: 1, maxLength: 12, unit: "grapheme" })
const field = fc.constantFrom("ip", "user_id", "header:X-Key", "query:q", "body:user.email", "route")
const optional = <T>(values: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> =>
  fc.option(values, { nil: undefined, freq: 2 })
const json = fc.oneof(text, fc.integer(), fc.boolean(), fc.constantFrom(null, 0.5, []))
const match: fc.Arbitrary<RuleMatch> = fc.record({
  methods: optional(fc.array(fc.constantFrom("GET", "post", "PURGE"), { minLength: 1, maxLength: 3 })),
  path: optional(fc.constantFrom("/", "/users/:id", "/files/*path", "/A%20b")),
  fields: optional(fc.dictionary(field, fc.array(text, { minLength: 1, maxLength: 3 }), { maxKeys: 2 })),
})
/** Each algorithm with the members that it uses. */
const counting: fc.Arbitrary<Partial<RateRule>> = fc.oneof(
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
const queue = fc.record({
  maxWaiting: optional(fc.integer({ min: 1, max: 500 })),
  maxWaitMs: optional(fc.integer({ min: 1, max: 60_000 })),
})
const throttle: fc.Arbitrary<Throttle> = fc.oneof(
  fc.constant("hard" as const),
  fc.record({ kind: fc.constant("hard" as const) }),
  fc.record({
    kind: fc.constant("soft" as const),
    percent: fc.constantFrom(0.5, 5, 33.3, 1000),
    queue: optional(queue),
  }),
  fc.record({
    kind: fc.constant("elastic" as const),
    ceiling: optional(fc.constantFrom(1_000_000, 6_000_000_000)),
    queue: optional(queue),
  }),
  queue.map((line) => ({ kind: "queue" as const, ...line })),
)
const rate = fc.record({
  limit: fc.oneof(fc.integer({ min: 1, max: 1_000_000 }), fc.constant(5_000_000_000)),
  window: fc.oneof(
    fc.integer({ min: 1, max: 1_300_000_000 }),
    fc.constantFrom(1_000, 60_000, 604_800_000, "1 minute", "15m", "1.5 hours", "2 weeks", "day"),
  ),
  counts: optional(fc.constantFrom("requests", "tokens", "__proto__")),
  countRejected: optional(fc.boolean()),
})
const calendar = fc
  .constantFrom<[CalendarPeriod, readonly (number | string)[]]>(
    ["day", []],
    ["week", [1, 7, "2026-01-31"]],
    ["month", [1, 31, "15", "2026-01-31"]],
    ["year", ["01-31", "2024-02-29"]],
  )
  .chain(([per, anchors]) =>
    fc.record({
      per: fc.constant(per),
      limit: fc.integer({ min: 1, max: 1_000_000 }),
      timeZone: optional(fc.constantFrom("UTC", "Europe/Berlin")),
      ...(anchors.length > 0 && { anchor: optional(fc.constantFrom(...anchors)) }),
      counts: optional(fc.constantFrom("requests", "tokens")),
      countRejected: optional(fc.boolean()),
    }),
  )
const inFlight = fc.record({
  concurrent: fc.integer({ min: 1, max: 1_000_000 }),
  hold: optional(fc.oneof(fc.integer({ min: 2_000, max: 3_600_000 }), fc.constantFrom("2s", "0.5 hours"))),
} satisfies { [K in "concurrent" | "hold"]: fc.Arbitrary<InFlightRule[K]> })
const common = fc.record({
  name: optional(fc.constantFrom("a", "per user", "x".repeat(64))),
  field: fc.oneof(
    field,
    fc.constant("service"),
    fc.uniqueArray(fc.constantFrom("ip", "user_id", "route"), { minLength: 1 }),
  ),
  onMissing: optional(fc.constantFrom("ip", "skip", "deny", "shared")),
  throttle: optional(throttle),
  penalty: optional(
    fc.record({
      refusals: fc.integer({ min: 1, max: 1_000 }),
      within: optional(fc.constantFrom(1, 60_000, "90 seconds", "1 day")),
      for: fc.constantFrom<RulePenalty["for"]>(1_500, "15m", "2 weeks", ["1 minute", 90_000, "2h"]),
    }),
  ),
  notify: optional(fc.uniqueArray(fc.integer({ min: 1, max: 100 }), { minLength: 1, maxLength: 3 })),
  cost: optional(fc.integer({ min: 1, max: 9 })),
  match: optional(match),
  allow: optional(fc.array(fc.oneof(text, fc.constantFrom("10.0.0.0/8", "::1")), { maxLength: 3 })),
  deny: optional(fc.array(fc.oneof(text, fc.constant("192.0.2.7")), { maxLength: 3 })),
  overrides: optional(
    fc.dictionary(
      fc.oneof(text, fc.constantFrom("10.0.0.0/8", "2001:db8::1", "__proto__")),
      fc.oneof(
        fc.integer({ min: 9, max: 1_000 }),
        fc.record({
          limit: fc.integer({ min: 9, max: 1_000 }),
          burst: optional(fc.integer({ min: 9, max: 1_000 })),
        }),
      ),
      { maxKeys: 3 },
    ),
  ),
  rejectionMessage: optional(fc.oneof(text, fc.constant("exhausted-daily-limit"))),
  rejection: optional(
    fc
      .record({
        status: optional(fc.integer({ min: 400, max: 599 })),
        body: optional(
          fc.oneof(text, fc.constant(""), fc.array(json, { maxLength: 2 }), fc.dictionary(text, json)),
        ),
        contentType: optional(fc.constantFrom("text/html", "application/vnd.api+json")),
      })
      .filter(({ body, contentType }) => body !== undefined || contentType === undefined),
  ),
  shadow: optional(fc.boolean()),
  onStoreFailure: optional(fc.constantFrom("local", "allow", "deny")),
} satisfies {
  [K in Exclude<
    keyof Rule,
    | Counting
    | "limit"
    | "window"
    | "per"
    | "timeZone"
    | "anchor"
    | "counts"
    | "countRejected"
    | "concurrent"
    | "hold"
  >]-?: fc.Arbitrary<Rule[K]>
})
type Counting = "algorithm" | "align" | "buckets" | "burst" | "refill"
const rule: fc.Arbitrary<Rule> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.tuple(common, rate, counting).map(([one, size, more]) => ({ ...one, ...size, ...more })),
  },
  { weight: 1, arbitrary: fc.tuple(common, calendar).map(([one, size]) => ({ ...one, ...size })) },
  { weight: 1, arbitrary: fc.tuple(common, inFlight).map(([one, size]) => ({ ...one, ...size })) },
)

/** Lists of rules that are valid, alone and together, with every member that can be stored. */
export const goodRules: fc.Arbitrary<Rule[]> = fc
  .array(rule, { maxLength: 4 })
  .map((rules) => rules.filter((each) => parseCodeRules([each], "").problems.length === 0))
  .filter((rules) => parseCodeRules(rules, "rules").problems.length === 0)
