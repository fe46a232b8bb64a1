import { describe, expect, test } from "vitest"
import { InvalidRuleError } from "../../ground/errors.ts"
import { parseRuleDocument } from "../documents/rule-document.ts"
import type { ParsedRule } from "../rule.ts"
import { parseRule, parseRules, requireRules } from "./parse-rule.ts"
import { RULE_MEMBERS } from "./rule-members.ts"

/** Parses one rule. Fails if the rule has a problem. */
function parsed(rule: Record<string, unknown>): ParsedRule {
  const { rule: result, problems } = parseRule({ limit: 5, window: "1m", ...rule }, "")
  expect(problems).toEqual([])
  return result as ParsedRule
}

/** Returns the problems of one rule, each as "path: message; accepted". */
function wrong(rule: Record<string, unknown>): string[] {
  const { rule: result, problems } = parseRule({ limit: 5, window: "1m", ...rule }, "")
  expect(result).toBeUndefined()
  return problems.map(({ path, message, accepted }) => `${path}: ${message}; ${accepted}`)
}

describe("a valid rule", () => {
  test("gets a default for every option that it does not set", () => {
    expect(parsed({})).toEqual({
      name: "service-1m",
      limit: 5,
      windowMs: 60_000,
      fields: [],
      onMissing: "ip",
      algorithm: "sliding-window",
      align: "epoch",
      refill: "continuous",
      throttle: { kind: "hard" },
      countRejected: false,
      cost: 1,
      counts: "requests",
      allow: [],
      deny: [],
      shadow: false,
    })
  })

  test("keeps every option that it sets", () => {
    const rule = {
      name: "login",
      limit: 10,
      window: 1500,
      field: ["ip", "body:account"],
      onMissing: "deny",
      counts: "tokens",
      algorithm: "fixed-window",
      align: "first-hit",
      throttle: "hard",
      countRejected: true,
      penalty: { refusals: 5, within: "90 seconds", for: 3_600_000 },
      notify: [100, 80],
      cost: 10,
      match: { methods: ["post", "POST"], path: "/login", fields: { "header:X-Plan": ["free"] } },
      rejectionMessage: "come back later",
      shadow: true,
      onStoreFailure: "allow",
    }
    const { window: _window, field: _field, ...same } = rule
    expect(parsed(rule)).toEqual({
      ...same,
      refill: "continuous",
      throttle: { kind: "hard" },
      notify: [80, 100],
      penalty: { refusals: 5, withinMs: 90_000, forMs: [3_600_000] },
      windowMs: 1500,
      fields: ["ip", "body:account"],
      match: { methods: ["POST"], path: "/login", fields: { "header:x-plan": ["free"] } },
      allow: [],
      deny: [],
    })
  })

  test("counts refusals for its penalty within its own window by default", () => {
    const { penalty } = parsed({ field: "ip", window: "2 minutes", penalty: { refusals: 5, for: "1 hour" } })
    expect(penalty).toEqual({ refusals: 5, withinMs: 120_000, forMs: [3_600_000] })
  })

  test("may have a penalty with a list of block durations", () => {
    const penalty = { refusals: 5, for: ["1 minute", 600_000, "1h"] }
    expect(parsed({ field: "ip", penalty }).penalty?.forMs).toEqual([60_000, 600_000, 3_600_000])
  })

  test("may set countRejected to false for a leaky bucket, which queues requests", () => {
    expect(parsed({ algorithm: "leaky-bucket", countRejected: false }).countRejected).toBe(false)
    expect(parsed({ algorithm: "leaky-bucket", throttle: "hard", countRejected: true }).countRejected).toBe(
      true,
    )
  })

  test.each([
    [{ field: "ip" }, "ip-1m", ["ip"]],
    [{ field: ["ip"] }, "ip-1m", ["ip"]],
    [{ field: ["ip", "route"] }, "ip+route-1m", ["ip", "route"]],
    [{ field: "service", window: "1 day" }, "service-1d", []],
    [{ field: ["service"], window: 90_000 }, "service-90s", []],
    [{ field: "header:X-API-Key", window: 500 }, "header:x-api-key-500ms", ["header:x-api-key"]],
  ])("with the members %j gets the default name %j", (rule, name, fields) => {
    expect(parsed(rule)).toMatchObject({ name, fields })
  })

  test("may have a function as its limit, which is not called during validation", () => {
    const limit = () => {
      throw new Error("not now")
    }
    expect(parsed({ limit, cost: 1_000_000, window: "1 week" }).limit).toBe(limit)
  })

  test.each([
    ["milliseconds up to 2^53", { limit: 9_007_199_254_740_991, window: 1 }],
    ["whole seconds because the window is long", { limit: 5_000_000, window: "5 weeks" }],
    ["whole seconds up to 2^53", { limit: 150_119_987_579_016, window: "1m" }],
  ])("may have a limit that is counted in %s", (_name, rule) => {
    expect(parsed(rule).limit).toBe(rule.limit)
  })

  test("may allow or deny addresses and ranges of ip, and any strings of another field", () => {
    const allow = ["192.0.2.7", "10.0.0.0/8", "2001:db8::1", "2001:db8::/32", "::ffff:10.0.0.1"]
    expect(parsed({ field: "ip", allow, deny: ["0.0.0.0/0"] })).toMatchObject({ allow, deny: ["0.0.0.0/0"] })
    expect(parsed({ field: ["user_id"], deny: ["alice", "10.0.0.0/99"] }).deny).toEqual([
      "alice",
      "10.0.0.0/99",
    ])
  })

  test("may contain undefined options, which count as absent", () => {
    expect(
      parsed(
        Object.fromEntries(
          Object.keys(RULE_MEMBERS)
            .slice(4)
            .map((name) => [name, undefined]),
        ),
      ).name,
    ).toBe("service-1m")
  })

  test("is a copy, so later changes to the input object have no effect", () => {
    const match = { methods: ["GET"], fields: { plan: ["free"] } }
    const rule = { field: "ip", allow: ["192.0.2.7"], match }
    const result = parsed(rule)
    rule.allow.push("0.0.0.0/0")
    match.methods.push("POST")
    match.fields.plan.push("pro")
    expect(result).toMatchObject({
      allow: ["192.0.2.7"],
      match: { methods: ["GET"], fields: { plan: ["free"] } },
    })
  })
})

describe("a rule with concurrent", () => {
  const PERMITS = "a whole number from 1 to 1000000, or a function that returns one for a request"
  const HOLD = 'a time from 2 seconds to 1 hour: a string such as "30 seconds", or milliseconds'

  /** Returns the parsed rule, or its problems as "path: message; accepted". */
  function inFlight(rule: Record<string, unknown>): ParsedRule | string[] {
    const { rule: result, problems } = parseRule({ concurrent: 5, ...rule }, "")
    return result ?? problems.map(({ path, message, accepted }) => `${path}: ${message}; ${accepted}`)
  }

  test("counts requests in progress, in two parts of 15 seconds by default", () => {
    expect(inFlight({ field: "ip" })).toEqual({
      name: "ip-in-flight",
      limit: 5,
      windowMs: 15_000,
      fields: ["ip"],
      onMissing: "ip",
      algorithm: "in-flight",
      align: "epoch",
      refill: "continuous",
      throttle: { kind: "hard" },
      countRejected: false,
      cost: 1,
      counts: "concurrent-requests",
      allow: [],
      deny: [],
      shadow: false,
    })
  })

  test.each([
    ["2 seconds", 1_000],
    [2_001, 1_001],
    ["90s", 45_000],
    ["1 hour", 1_800_000],
  ])("counts in parts of half of its hold, rounded up: %s", (hold, windowMs) => {
    expect(inFlight({ hold })).toMatchObject({ windowMs })
  })

  test("may have a function, and every member that does not count in time", () => {
    const concurrent = () => 5
    const members = {
      name: "streams",
      field: ["user_id"],
      onMissing: "skip",
      match: { path: "/chat" },
      allow: ["ann"],
      deny: ["bob"],
      overrides: { vip: 1_000_000, cleo: { limit: 2 } },
      throttle: { kind: "elastic", ceiling: 1_000_000 },
      penalty: { refusals: 3, for: "1 minute" },
      notify: [80],
      cost: 2,
      shadow: true,
      rejection: { status: 503 },
      rejectionMessage: "retry-with-fixed-time",
      onStoreFailure: "deny",
    }
    expect(inFlight({ ...members, concurrent, overrides: { cleo: { limit: 2 } } })).toMatchObject({
      limit: concurrent,
      cost: 2,
    })
    expect(inFlight({ ...members, concurrent: 1_000_000, throttle: "hard" })).toMatchObject({
      limit: 1_000_000,
      penalty: { refusals: 3, withinMs: 30_000, forMs: [60_000] },
    })
  })

  test.each<[Record<string, unknown>, string]>([
    [{ concurrent: 0 }, `concurrent: 0 is not a number of requests; ${PERMITS}`],
    [{ concurrent: 1_000_001 }, `concurrent: 1000001 is not a number of requests; ${PERMITS}`],
    [{ concurrent: 0, hold: "1 minute" }, `concurrent: 0 is not a number of requests; ${PERMITS}`],
    [{ concurrent: null }, `concurrent: null is not a number of requests; ${PERMITS}`],
    [{ hold: 30 }, `hold: 30 is not a valid time; ${HOLD}`],
    [{ hold: "1999 ms" }, `hold: "1999 ms" is not a valid time; ${HOLD}`],
    [{ hold: 3_600_001 }, `hold: 3600001 is not a valid time; ${HOLD}`],
    [
      { overrides: { ann: 1_000_001 }, field: "user_id" },
      "overrides.ann: 1000001 is too many for a rule with concurrent; at most 1000000 in total",
    ],
    [
      { overrides: { ann: { limit: 5, burst: 9 } }, field: "user_id" },
      "overrides.ann.burst: is not used by a rule with concurrent; only a limit",
    ],
    [
      { concurrent: 800_000, throttle: { kind: "soft", percent: 50 } },
      "throttle.percent: 1200000, with the units admitted above the limit, is too many for a rule with concurrent; at most 1000000 in total",
    ],
    [
      { throttle: { kind: "elastic", ceiling: 1_000_001 } },
      "throttle.ceiling: 1000001, with the units admitted above the limit, is too many for a rule with concurrent; at most 1000000 in total",
    ],
    [
      { throttle: { kind: "elastic" } },
      "throttle.ceiling: is missing, but a rule with concurrent needs it; a ceiling up to 1000000",
    ],
    [
      { throttle: { kind: "queue", maxWaiting: 0 } },
      'throttle.maxWaiting: 0 lets no request wait with concurrent, so every request that does not fit would be refused; a positive whole number below 2^53, or throttle "hard"',
    ],
    [
      { throttle: { kind: "queue" }, field: "ip", penalty: { refusals: 3, for: "1m" } },
      'penalty: applies to refused requests, but throttle "queue" holds them instead; no penalty, or throttle "hard"',
    ],
    [{ cost: 6 }, "cost: 6 is above the limit of 5, so no request would ever be admitted; 1 to 5"],
    [
      { rejectionMessage: "exhausted-daily-limit" },
      'rejectionMessage: "exhausted-daily-limit" names a time to retry, but nobody knows when requests in progress end; another message, such as "retry-with-fixed-time"',
    ],
  ])("is rejected with one problem: %j", (rule, problem) => {
    expect(inFlight(rule)).toEqual([problem])
  })

  test.each<[member: string, value: unknown, other?: string]>([
    ["limit", 5],
    ["window", "1 minute"],
    ["counts", "tokens"],
    ["algorithm", "token-bucket"],
    ["align", "first-hit"],
    ["buckets", 6],
    ["burst", 7],
    ["refill", "periodic"],
    ["countRejected", false],
    ["per", "month", "per"],
    ["timeZone", "Europe/Berlin", "per"],
    ["anchor", 31, "per"],
  ])("cannot also have %s", (member, value, other = "window") => {
    expect(inFlight({ [member]: value })).toEqual([
      `${member}: ${JSON.stringify(value)} is not used by a rule with concurrent; either concurrent, or limit and ${other}`,
    ])
  })

  test("is the only rule that can have a hold", () => {
    expect(wrong({ hold: "1 minute" })).toEqual([
      'hold: "1 minute" is used only by a rule with concurrent; no hold, or concurrent instead of limit and window',
    ])
  })

  test("is the only rule that counts concurrent-requests", () => {
    expect(wrong({ counts: "concurrent-requests" })).toEqual([
      'counts: "concurrent-requests" is not a unit of your own; another name; a rule with concurrent limits requests in progress',
    ])
  })

  test("is suggested for the names that other libraries have, and if a rule limits nothing", () => {
    expect(wrong({ maxConcurrent: 5 })).toEqual([
      'maxConcurrent: "maxConcurrent" is not a member of a rule; use "concurrent" instead; undefined',
    ])
    expect(wrong({ limit: undefined, window: undefined })).toEqual([
      "limit: is missing; a positive whole number below 2^53, or a function that returns one for a request; or concurrent, instead of limit and window",
      expect.stringMatching(/^window: is missing; a positive whole number of milliseconds/),
    ])
  })
})

test("a number that is invalid for two reasons causes only one problem", () => {
  const [most, least] = [2 ** 60, -(2 ** 60)]
  expect(
    wrong({ limit: least, window: most, cost: least, burst: least }).map((said) => said.split(":")[0]),
  ).toEqual(["limit", "window", "cost", "burst"])
  expect(wrong({ allow: [5, 5] })).toHaveLength(2)
})

describe("an invalid rule", () => {
  const FUNCTION = "a positive whole number below 2^53, or a function that returns one for a request"

  test.each([
    [{ limit: 0 }, `limit: 0 is not a limit; ${FUNCTION}`],
    [{ limit: -1 }, `limit: -1 is not a limit; ${FUNCTION}`],
    [{ limit: 2.5 }, `limit: 2.5 is not a limit; ${FUNCTION}`],
    [{ limit: 2 ** 53 }, `limit: 9007199254740992 is not a limit; ${FUNCTION}`],
    [{ limit: undefined }, `limit: is missing; ${FUNCTION}`],
    [{ cost: 6 }, "cost: 6 is above the limit of 5, so no request would ever be admitted; 1 to 5"],
    [
      { align: "first-hit" },
      'align: is not used by algorithm "sliding-window"; no align, or algorithm "fixed-window"',
    ],
    [
      { algorithm: "gcra" },
      'algorithm: "gcra" is not an algorithm; "sliding-window", "sliding-window-strict", "sliding-log", "fixed-window", "token-bucket", "leaky-bucket"',
    ],
    [
      { rejectionMessage: "x".repeat(1025) },
      `rejectionMessage: "${"x".repeat(58)}… is not a rejection message; a string of 1 to 1024 characters`,
    ],
    [{ match: { path: `/${"x".repeat(1024)}` } }, /^match.path: .* is not a path pattern/],
    [{ field: "ip", deny: ["10.0.0.0/8/8"] }, /^deny\[0\]: "10.0.0.0\/8\/8" is not an address/],
  ])("is rejected with one problem (row %#)", (rule, problem) => {
    expect(wrong(rule)).toEqual([typeof problem === "string" ? problem : expect.stringMatching(problem)])
  })

  test("with an unknown member is rejected with a suggestion of the intended or nearest name", () => {
    expect(wrong({ max: 5 })).toEqual([
      'max: "max" is not a member of a rule; use "limit" instead; undefined',
    ])
    expect(wrong({ xyz: 5 })).toEqual([
      'xyz: "xyz" is not a member of a rule; the nearest is "per"; undefined',
    ])
    expect(wrong({ on_missing: "deny" })).toEqual([
      'on_missing: "on_missing" is not a member of a rule; did you mean "onMissing"?; undefined',
    ])
  })

  test("causes one list of all problems, including conflicts between valid members", () => {
    expect(
      wrong({ name: "", window: "soon", cost: 7, align: "epoch", deny: ["x"] }).map(
        (text) => text.split(":")[0],
      ),
    ).toEqual(["name", "window", "cost", "align", "deny"])
  })

  test("causes no problem that only follows from another invalid member", () => {
    expect(
      wrong({ algorithm: "gcra", align: "epoch", buckets: 7, burst: 7, refill: "periodic" }),
    ).toHaveLength(1)
    expect(wrong({ field: "IP", deny: ["192.0.2.7"] })).toHaveLength(1)
    expect(wrong({ limit: 0, cost: 9 })).toHaveLength(1)
    expect(wrong({ field: "query:имя", name: 5 })).toHaveLength(1)
  })

  test.each([null, undefined, 5, "5 a minute", [], () => 5])(
    "is reported with its path if it is not an object: %s",
    (value) => {
      const { rule, problems } = parseRule(value, "rules[3]")
      expect(rule).toBeUndefined()
      expect(problems).toHaveLength(1)
      expect(problems[0]).toMatchObject({
        path: "rules[3]",
        accepted: "an object with name, field, limit, window, per, …",
      })
    },
  )

  test("with a key __proto__ is rejected and does not change the prototype of objects", () => {
    const rule = JSON.parse('{"match":{"fields":{"__proto__":["free"]}},"__proto__":{"shadow":true}}')
    expect(wrong(rule).map((text) => text.split(":")[0])).toEqual(["match.fields.__proto__", "__proto__"])
    expect(({} as Record<string, unknown>).shadow).toBeUndefined()
  })
})

describe("a list of rules", () => {
  const minute = { limit: 5, window: "1m" }

  test("is parsed into the valid rules in order and the problems of the invalid rules", () => {
    const { rules, problems } = parseRules([minute, { limit: 5 }, { ...minute, field: "ip" }], "rules")
    expect(rules.map(({ name }) => name)).toEqual(["service-1m", "ip-1m"])
    expect(problems.map(({ path }) => path)).toEqual(["rules[1].window"])
  })

  test.each([
    [
      [
        { ...minute, name: "a" },
        { ...minute, name: "a" },
      ],
      '"a" is already the name of rule [0]',
    ],
    [
      [minute, { limit: 9, window: 60_000 }],
      '"service-1m", the default name, is already the name of rule [0]',
    ],
    [
      [minute, { limit: 9, window: "1h", name: "service-1m" }],
      '"service-1m" is already the name of rule [0]',
    ],
  ])("with a duplicate name is parsed without the later rule", (value, message) => {
    const { rules, problems } = parseRules(value, "rules")
    expect(rules).toHaveLength(1)
    expect(rules[0]?.limit).toBe(5)
    expect(problems).toEqual([
      {
        path: "rules[1].name",
        rule: message.slice(1, message.indexOf('"', 1)),
        message,
        accepted: "a name that no other rule in the list has",
      },
    ])
  })

  test("with a missing entry causes a problem for this entry", () => {
    // A stray comma creates an array with a hole.
    const { rules, problems } = parseRules(Object.assign(new Array(2), { 1: minute }), "rules")
    expect(rules.map(({ name }) => name)).toEqual(["service-1m"])
    expect(problems).toMatchObject([{ path: "rules[0]", message: "is missing" }])
  })

  test("causes no name conflict with a rule whose name or field is invalid", () => {
    const { problems } = parseRules([minute, { ...minute, field: "IP" }, { ...minute, name: "" }], "rules")
    expect(problems.map(({ path }) => path)).toEqual(["rules[1].field", "rules[2].name"])
  })

  test.each([null, undefined, {}, "rules", 5])("cannot be %j", (value) => {
    expect(parseRules(value, "rules")).toMatchObject({
      rules: [],
      problems: [{ path: "rules", accepted: "a list of rules" }],
    })
  })

  test("makes requireRules throw one error with the problems of all rules", () => {
    expect(requireRules([{ ...minute, field: "ip" }], "rules")).toHaveLength(1)
    const caught = expect.objectContaining({
      code: "SLUICE_INVALID_RULE",
      problems: [
        expect.objectContaining({ path: "rules[0].limit" }),
        expect.objectContaining({ path: "rules[1].window" }),
      ],
    })
    expect(() =>
      requireRules(
        [
          { field: "ip", window: "1m" },
          { field: "ip", limit: 5 },
        ],
        "rules",
      ),
    ).toThrow(caught)
    expect(() => requireRules([{}], "rules")).toThrow(InvalidRuleError)
  })
})

describe("rules that have been validated before", () => {
  const document = {
    rules: [
      { limit: 5, window: "1m" },
      { name: "b", rate: { requests_per_unit: 2, unit: "day" } },
    ],
  }

  test("are accepted again, with their given or default names", () => {
    const { rules, problems } = parseRules(parseRuleDocument(document), "rules")
    expect(problems).toEqual([])
    expect(rules.map(({ name, limit, windowMs }) => [name, limit, windowMs])).toEqual([
      ["service-1m", 5, 60_000],
      ["b", 2, 86_400_000],
    ])
  })

  test("cannot be modified, and modified copies of them are validated again", () => {
    const [rule] = parseRuleDocument(document)
    expect(() => Object.assign(rule as object, { limit: -1 })).toThrow(TypeError)
    expect(parseRules([{ ...rule, limit: -1 }], "rules").problems).toMatchObject([{ path: "rules[0].limit" }])
  })

  test("still need unique names", () => {
    const [rule] = parseRuleDocument(document)
    expect(parseRules([rule, rule], "rules").problems).toMatchObject([
      { path: "rules[1].name", message: '"service-1m", the default name, is already the name of rule [0]' },
    ])
  })
})
