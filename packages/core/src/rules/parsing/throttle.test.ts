import { describe, expect, test } from "vitest"
import { parseRuleDocument } from "../documents/rule-document.ts"
import type { ParsedRule } from "../rule.ts"
import { parseRule } from "./parse-rule.ts"

const KINDS =
  '"hard", or an object with the kind "hard", "soft" (and percent), "elastic" or "queue", such as {"kind": "soft", "percent": 5}'
const UNITS = "a positive whole number below 2^53"

function parsed(rule: Record<string, unknown>): ParsedRule {
  const { rule: result, problems } = parseRule({ limit: 500, window: "1m", ...rule }, "")
  expect(problems).toEqual([])
  return result as ParsedRule
}

function wrong(rule: Record<string, unknown>): string[] {
  const { rule: result, problems } = parseRule({ limit: 500, window: "1m", ...rule }, "")
  expect(result).toBeUndefined()
  return problems.map(({ path, message, accepted }) => `${path}: ${message}; ${accepted}`)
}

describe("a throttle", () => {
  const signal = () => true
  test.each([
    [undefined, { kind: "hard" }],
    ["hard", { kind: "hard" }],
    [{ kind: "hard" }, { kind: "hard" }],
    [
      { kind: "soft", percent: 0.2 },
      { kind: "soft", percent: 0.2 },
    ],
    [
      { kind: "soft", percent: 1000 },
      { kind: "soft", percent: 1000 },
    ],
    [{ kind: "elastic" }, { kind: "elastic" }],
    [{ kind: "elastic", ceiling: undefined, signal: undefined }, { kind: "elastic" }],
    [
      { kind: "elastic", ceiling: 501, signal },
      { kind: "elastic", ceiling: 501, signal },
    ],
    [{ kind: "queue" }, { kind: "queue", maxWaiting: 100, maxWaitMs: 10_000 }],
    [
      { kind: "queue", maxWaiting: 1, maxWaitMs: 2 ** 31 - 1 },
      { kind: "queue", maxWaiting: 1, maxWaitMs: 2 ** 31 - 1 },
    ],
    [
      { kind: "soft", percent: 5, queue: {} },
      { kind: "soft", percent: 5, queue: { maxWaiting: 100, maxWaitMs: 10_000 } },
    ],
    [
      { kind: "soft", percent: 5, queue: undefined },
      { kind: "soft", percent: 5 },
    ],
    [
      { kind: "elastic", signal, queue: { maxWaiting: 3, maxWaitMs: undefined } },
      { kind: "elastic", signal, queue: { maxWaiting: 3, maxWaitMs: 10_000 } },
    ],
  ])("written as %j is parsed to %j", (throttle, expected) => {
    expect(parsed({ throttle }).throttle).toStrictEqual(expected)
  })

  test("of a leaky bucket is a queue by default, and hard if the rule says so", () => {
    const rule = { algorithm: "leaky-bucket" }
    expect(parsed(rule).throttle).toEqual({ kind: "queue", maxWaiting: 0, maxWaitMs: 10_000 })
    expect(parsed({ ...rule, throttle: "hard" }).throttle).toEqual({ kind: "hard" })
  })

  test("of a leaky bucket lets no request wait in front of the bucket by default", () => {
    const rule = { algorithm: "leaky-bucket" }
    for (const maxWaiting of [undefined, 0, 3]) {
      const { throttle } = parsed({ ...rule, throttle: { kind: "queue", maxWaiting } })
      expect(throttle).toEqual({ kind: "queue", maxWaiting: maxWaiting ?? 0, maxWaitMs: 10_000 })
      const soft = { kind: "soft", percent: 5, queue: { maxWaiting } }
      expect(parsed({ ...rule, throttle: soft }).throttle).toMatchObject({
        queue: { maxWaiting: maxWaiting ?? 0, maxWaitMs: 10_000 },
      })
    }
  })

  test("with maxWaiting 0 is rejected for any other algorithm, also in documents", () => {
    const accepted = `${UNITS}, throttle "hard", or algorithm "leaky-bucket"`
    const message = (algorithm: string) =>
      `0 lets no request wait with algorithm "${algorithm}", so every request that does not fit would be refused`
    const throttle = { kind: "queue", maxWaiting: 0 }
    expect(wrong({ throttle })).toEqual([`throttle.maxWaiting: ${message("sliding-window")}; ${accepted}`])
    expect(wrong({ throttle, algorithm: "token-bucket" })).toEqual([
      `throttle.maxWaiting: ${message("token-bucket")}; ${accepted}`,
    ])
    const stored = { limit: 5, window: "1m", throttle: { kind: "queue", max_waiting: 0 } }
    expect(() => parseRuleDocument({ rules: [stored] })).toThrow(
      `rules[0].throttle.max_waiting: ${message("sliding-window")}`,
    )
    expect(parseRuleDocument({ rules: [{ ...stored, algorithm: "leaky-bucket" }] })).toHaveLength(1)
    expect(wrong({ throttle: { kind: "soft", percent: 5, queue: { maxWaiting: 0 } } })).toEqual([
      `throttle.queue.maxWaiting: ${message("sliding-window")}; ${UNITS}, no queue, or algorithm "leaky-bucket"`,
    ])
    const soft = { kind: "soft", percent: 50, queue: { max_waiting: 0 } }
    expect(() => parseRuleDocument({ rules: [{ ...stored, throttle: soft }] })).toThrow(
      `rules[0].throttle.queue.max_waiting: ${message("sliding-window")}`,
    )
  })

  test.each(["soft", "elastic"] as const)(
    "of kind %s with a queue cannot be combined with countRejected or penalty",
    (kind) => {
      const throttle = { kind, ...(kind === "soft" && { percent: 5 }), queue: {} }
      const penalty = { refusals: 3, for: "1h" }
      const message = `applies to refused requests, but throttle "${kind}" with a queue holds them instead`
      expect(wrong({ field: "ip", countRejected: true, penalty, throttle })).toEqual([
        `countRejected: ${message}; false, or no queue`,
        `penalty: ${message}; no penalty, or no queue`,
      ])
      const { queue: _, ...refusing } = throttle
      parsed({ field: "ip", countRejected: true, penalty, throttle: refusing })
    },
  )

  test.each([
    ["soft", `throttle: "soft" is not a throttle; ${KINDS}`],
    [null, `throttle: null is not a throttle; ${KINDS}`],
    [[{ kind: "soft", percent: 5 }], /^throttle: \[.* is not a throttle; /],
    [{}, 'throttle.kind: is missing; "hard", "soft", "elastic", "queue"'],
    [
      { kind: "Soft" },
      'throttle.kind: "Soft" is not a kind of throttle; did you mean "soft"?; "hard", "soft", "elastic", "queue"',
    ],
    [{ kind: "__proto__" }, /^throttle.kind: "__proto__" is not a kind of throttle/],
    [{ kind: "hard", percent: 5 }, /^throttle.percent: "percent" is not a member of a "hard" throttle/],
    [{ kind: "soft" }, "throttle.percent: is missing; a number above 0 and up to 1000"],
    [
      { kind: "soft", percent: 0 },
      "throttle.percent: 0 is not a percentage; a number above 0 and up to 1000",
    ],
    [{ kind: "soft", percent: 1000.1 }, /^throttle.percent: 1000.1 is not a percentage/],
    [{ kind: "soft", percent: Number.NaN }, /^throttle.percent: NaN is not a percentage/],
    [{ kind: "soft", percent: "5" }, /^throttle.percent: "5" is not a percentage/],
    [
      { kind: "soft", percent: 0.19 },
      "throttle.percent: 0.19 percent of 500 is less than one unit, so it would have no effect; 0.2 to 1000",
    ],
    [{ kind: "elastic", ceiling: 501.5 }, `throttle.ceiling: 501.5 is not a ceiling; ${UNITS}`],
    [
      { kind: "elastic", ceiling: 500 },
      "throttle.ceiling: 500 is not above the limit of 500, so it would have no effect; 501 or more",
    ],
    [
      { kind: "elastic", signal: true },
      "throttle.signal: true is not a signal; a function that returns whether there is spare capacity",
    ],
    [
      { kind: "queue", maxWaiting: -1 },
      `throttle.maxWaiting: -1 is not a valid number of waiting requests; ${UNITS}, or 0 for a leaky bucket`,
    ],
    [
      { kind: "queue", maxWaitMs: 2 ** 31 },
      "throttle.maxWaitMs: 2147483648 is not a wait; a whole number of milliseconds from 1 to 2147483647",
    ],
    [
      { kind: "queue", max_waiting: 5 },
      'throttle.max_waiting: "max_waiting" is not a member of a "queue" throttle; did you mean "maxWaiting"?; undefined',
    ],
    [
      { kind: "soft", percent: 5, queue: true },
      "throttle.queue: true is not a queue; an object with maxWaiting, maxWaitMs",
    ],
    [
      { kind: "soft", percent: 5, queue: { maxWaitMs: "2s" } },
      'throttle.queue.maxWaitMs: "2s" is not a wait; use the number 2000; a whole number of milliseconds from 1 to 2147483647',
    ],
    [
      { kind: "elastic", queue: { max_waiting: 5 } },
      'throttle.queue.max_waiting: "max_waiting" is not a member of a queue; did you mean "maxWaiting"?; undefined',
    ],
    [
      { kind: "elastic", maxWaiting: 5 },
      /^throttle.maxWaiting: "maxWaiting" is not a member of an "elastic"/,
    ],
    [{ kind: "hard", queue: {} }, /^throttle.queue: "queue" is not a member of a "hard" throttle/],
    [{ kind: "queue", queue: {} }, /^throttle.queue: "queue" is not a member of a "queue" throttle/],
  ])("written as %j is rejected", (throttle, problem) => {
    expect(wrong({ throttle })).toEqual([
      typeof problem === "string" ? problem : expect.stringMatching(problem),
    ])
  })

  test("that is invalid causes no follow-up problems, and other problems are still reported", () => {
    expect(wrong({ throttle: { kind: "soft" }, cost: 501 })).toHaveLength(1)
    expect(wrong({ throttle: { kind: "elastic", ceiling: 3 }, cost: 501 })).toHaveLength(1)
    const soft = { algorithm: "token-bucket", throttle: { kind: "soft", percent: 1 } }
    expect(wrong({ ...soft, limit: 150_119_987_579_016, burst: 0 })).toEqual([
      expect.stringMatching(/^burst: /),
    ])
    expect(wrong({ algorithm: "fixed-window", buckets: 60, window: 59 })).toEqual([
      expect.stringMatching(/^buckets: .*"fixed-window"/),
    ])
    expect(wrong({ throttle: "soft", shadow: 1, name: "" }).map((text) => text.split(":")[0])).toEqual([
      "name",
      "throttle",
      "shadow",
    ])
  })
})

describe("an algorithm's own members", () => {
  test.each([
    [{ algorithm: "sliding-window-strict" }, { buckets: 60 }],
    [{ algorithm: "sliding-window-strict", window: 59 }, { buckets: 59 }],
    [{ algorithm: "sliding-window-strict", window: 1 }, { buckets: 1 }],
    [{ algorithm: "sliding-window-strict", buckets: 360, window: 360 }, { buckets: 360 }],
    [{ algorithm: "sliding-window", buckets: 2 }, { buckets: 2 }],
    [
      { algorithm: "token-bucket", burst: 1, refill: "periodic" },
      { burst: 1, refill: "periodic" },
    ],
    [{ algorithm: "leaky-bucket", burst: 9_000, cost: 9_000 }, { burst: 9_000 }],
  ])("are parsed from %j to %j", (rule, expected) => {
    expect(parsed(rule)).toMatchObject(expected)
  })

  test("are absent if the rule does not set them", () => {
    for (const algorithm of [
      "sliding-window",
      "token-bucket",
      "leaky-bucket",
      "sliding-log",
      "fixed-window",
    ]) {
      const { buckets, burst, refill } = parsed({ algorithm })
      expect({ buckets, burst, refill }).toEqual({ refill: "continuous" })
    }
    // Both rules have the same refill, so they share counters.
    expect(parsed({ algorithm: "token-bucket", refill: "continuous" })).toEqual(
      parsed({ algorithm: "token-bucket" }),
    )
  })

  const users = {
    align: ["fixed-window"],
    buckets: ["sliding-window", "sliding-window-strict"],
    burst: ["token-bucket", "leaky-bucket"],
    refill: ["token-bucket"],
  } as const
  const value = { align: "epoch", buckets: 7, burst: 7, refill: "periodic" }
  const algorithms = [
    "sliding-window",
    "sliding-window-strict",
    "sliding-log",
    "fixed-window",
    "token-bucket",
    "leaky-bucket",
  ] as const
  test.each(algorithms)("of %s are accepted, and all others are rejected", (algorithm) => {
    for (const [member, used] of Object.entries(users)) {
      const rule = { algorithm, [member]: value[member as keyof typeof value] }
      if ((used as readonly string[]).includes(algorithm)) parsed(rule)
      else {
        const others = used.map((name) => `"${name}"`).join(" or ")
        expect(wrong(rule)).toEqual([
          `${member}: is not used by algorithm "${algorithm}"; no ${member}, or algorithm ${others}`,
        ])
      }
    }
  })

  test.each([
    [
      { algorithm: "sliding-window-strict", buckets: 8, window: 7 },
      "buckets: 8 sub-windows do not fit into 7 ms: each must be at least 1 ms long; 2 to 7",
    ],
    [{ buckets: 2, window: 1 }, /^buckets: 2 sub-windows do not fit into 1 ms: .*; a longer window$/],
    [
      { algorithm: "token-bucket", burst: 7, cost: 8 },
      "cost: 8 is above the burst of 7, so no request would ever be admitted; 1 to 7",
    ],
    [
      { throttle: { kind: "soft", percent: 5 }, cost: 526 },
      "cost: 526 is above the limit plus its percent of 525, so no request would ever be admitted; 1 to 525",
    ],
    [
      { throttle: { kind: "elastic", ceiling: 600 }, cost: 601 },
      "cost: 601 is above the ceiling of 600, so no request would ever be admitted; 1 to 600",
    ],
    [
      { throttle: { kind: "elastic", ceiling: 600 }, algorithm: "token-bucket", burst: 600 },
      "throttle.ceiling: 600 is not above the burst of 600, so it would have no effect; 601 or more",
    ],
    [
      { algorithm: "token-bucket", burst: 2 ** 53 - 1 },
      "burst: 9007199254740991 in 60 s cannot be counted exactly: burst times seconds must be below 2^53; up to 150119987579016 in this window",
    ],
    [
      { limit: 150_119_987_579_016, throttle: { kind: "soft", percent: 1 } },
      "throttle.percent: 151621187454806 in 60 s cannot be counted exactly: units times seconds must be below 2^53; a smaller percent or limit",
    ],
    [
      { throttle: { kind: "elastic", ceiling: 2 ** 52 } },
      /^throttle.ceiling: 4503599627370496 in 60 s cannot be counted exactly/,
    ],
    [
      { algorithm: "sliding-log", limit: 1_001 },
      'limit: 1001 is too many for a log, which keeps an entry for each unit; at most 1000 in total, or algorithm "sliding-window-strict"',
    ],
    [
      { algorithm: "sliding-log", limit: 1_000, throttle: { kind: "soft", percent: 0.1 } },
      /^throttle.percent: 1001, with the units admitted above the limit, is too many for a log/,
    ],
    [
      { algorithm: "sliding-log", throttle: { kind: "elastic", ceiling: 1_001 } },
      /^throttle.ceiling: 1001, .* is too many for a log/,
    ],
    [
      { algorithm: "sliding-log", throttle: { kind: "elastic" } },
      "throttle.ceiling: is missing, but a log needs it, because it keeps an entry for each admitted unit; a ceiling up to 1000",
    ],
  ])("are rejected in the rule %j", (rule, problem) => {
    expect(wrong(rule)).toEqual([typeof problem === "string" ? problem : expect.stringMatching(problem)])
  })

  test.each([
    { algorithm: "sliding-log", limit: 1_000 },
    { algorithm: "sliding-log", limit: 800, throttle: { kind: "soft", percent: 25 } },
    { algorithm: "sliding-log", limit: 10, throttle: { kind: "elastic", ceiling: 1_000 } },
    { throttle: { kind: "soft", percent: 5 }, cost: 525 },
    { throttle: { kind: "elastic", ceiling: 600 }, cost: 600 },
    { throttle: { kind: "elastic" }, cost: 100_000 },
    { algorithm: "token-bucket", burst: 700, throttle: { kind: "soft", percent: 5 }, cost: 725 },
    { limit: () => 7, throttle: { kind: "soft", percent: 0.001 }, cost: 900 },
    { limit: () => 7, algorithm: "token-bucket", burst: 9, throttle: { kind: "elastic", ceiling: 10 } },
    {
      ...{ limit: () => 7, algorithm: "token-bucket", burst: 9, cost: 900 },
      throttle: { kind: "soft", percent: 0.001 },
    },
  ])("are accepted in the boundary case %j", (rule) => {
    parsed(rule)
  })
})
