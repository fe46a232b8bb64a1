import { describe, expect, it } from "vitest"
import { parseRule } from "./parse-rule.ts"

function problemsOf(rule: object): string[] {
  const { problems } = parseRule({ field: "user_id", limit: 5, window: "1 minute", ...rule }, "")
  return problems.map(({ path, message, accepted }) => `${path}: ${message}; ${accepted}`)
}

describe("overrides", () => {
  it("may be numbers, or objects with a limit and a burst", () => {
    const overrides = { ann: 2, "vip-7": { limit: 500 }, bob: { limit: 9, burst: 90 } }
    const rule = { field: "user_id", limit: 5, window: "1 minute", algorithm: "token-bucket", overrides }
    expect(parseRule(rule, "").rule?.overrides).toEqual(
      new Map<string, unknown>([
        ["ann", 2],
        ["vip-7", 500],
        ["bob", { limit: 9, burst: 90 }],
      ]),
    )
  })

  it("are absent from the parsed rule if the rule has none", () => {
    for (const overrides of [undefined, {}]) {
      expect(parseRule({ field: "ip", limit: 5, window: 1_000, overrides }, "").rule).not.toHaveProperty(
        "overrides",
      )
    }
  })

  it("may have any client name as a key, such as __proto__", () => {
    const overrides = JSON.parse('{"__proto__": 7, "constructor": 8, "limit": 9}')
    expect(problemsOf({ overrides })).toEqual([])
    expect(parseRule({ field: "u", limit: 5, window: 1_000, overrides }, "").rule?.overrides).toEqual(
      new Map([
        ["__proto__", 7],
        ["constructor", 8],
        ["limit", 9],
      ]),
    )
  })

  const LIMIT =
    "a positive whole number below 2^53, or an object with a limit; to refuse a client, list it in deny, and to exempt it, in allow"

  it.each([
    [
      { overrides: 5 },
      'overrides: 5 is not an object of overrides; an object such as {"ann": 2, "vip-7": {"limit": 500}}',
    ],
    [{ overrides: ["ann"] }, /^overrides: .* is not an object of overrides/],
    [{ overrides: { ann: 0 } }, `overrides.ann: 0 is not a limit; ${LIMIT}`],
    [{ overrides: { ann: null } }, `overrides.ann: null is not a limit; ${LIMIT}`],
    [{ overrides: { ann: Number.POSITIVE_INFINITY } }, `overrides.ann: Infinity is not a limit; ${LIMIT}`],
    [{ overrides: { ann: () => 5 } }, /^overrides\.ann: .* is not a limit/],
    [{ overrides: { ann: {} } }, "overrides.ann.limit: is missing; a positive whole number below 2^53"],
    [{ overrides: { ann: { limit: 2.5 } } }, /^overrides\.ann\.limit: 2\.5 is not a limit/],
    [
      { overrides: { ann: { limit: 2, max: 3 } } },
      /^overrides\.ann\.max: "max" is not a member of an override/,
    ],
    [{ overrides: { "": 5 } }, 'overrides[""]: "" is not a value; a non-empty string'],
    [
      { overrides: { ann: { limit: 2, burst: 3 } } },
      'overrides.ann.burst: is not used by algorithm "sliding-window"; no burst, or algorithm "token-bucket" or "leaky-bucket"',
    ],
    [
      { field: "service", overrides: { ann: 2 } },
      "overrides: lists values of one field, but the rule counts the whole service; a rule with a single field",
    ],
    [
      { field: ["ip", "user_id"], overrides: { ann: 2 } },
      "overrides: lists values of one field, but the rule counts a combination of fields; a rule with a single field",
    ],
    [{ field: "ip", overrides: { ann: 2 } }, /^overrides\.ann: "ann" is not an address/],
    [{ field: "method", overrides: { head: 2 } }, /^overrides\.head: "head" is counted as "GET"/],
    [
      { field: "method", overrides: { get: 2, GET: 3 } },
      'overrides.GET: is another spelling of "get", which has an override too; one override for each client',
    ],
    [
      { field: "ip", overrides: { "10.0.0.0/8": 2, "::ffff:10.1.2.3/104": 3 } },
      'overrides["::ffff:10.1.2.3/104"]: is another spelling of "10.0.0.0/8", which has an override too; one override for each client',
    ],
    [
      { cost: 3, overrides: { ann: 2 } },
      "overrides.ann: 2 is below the rule's cost of 3, so no request of this client would ever be admitted; 3 or more",
    ],
    [
      { cost: 3, algorithm: "token-bucket", overrides: { ann: { limit: 9, burst: 2 } } },
      "overrides.ann.burst: 2 is below the rule's cost of 3, so no request of this client would ever be admitted; 3 or more",
    ],
    [
      { throttle: { kind: "elastic", ceiling: 200 }, overrides: { ann: 200 } },
      "overrides.ann: the ceiling of 200 is not above 200, so it would have no effect for this client; at most 199",
    ],
    [
      { deny: ["ann"], overrides: { ann: 2 } },
      "overrides.ann: is in deny too, so this client is always refused; each client in one list",
    ],
    [
      { field: "ip", allow: ["10.0.0.0/8"], overrides: { "10.1.0.0/8": 2, "10.1.0.0/16": 3 } },
      'overrides["10.1.0.0/8"]: is in allow too, so this client is not counted; each client in one list',
    ],
    [
      { window: "1 week", overrides: { ann: 2 ** 52 } },
      /^overrides\.ann: 4503599627370496 in 604800 s cannot be counted exactly/,
    ],
    [
      { window: "1 week", overrides: { ann: { limit: 2 ** 52 } } },
      /^overrides\.ann\.limit: 4503599627370496 in 604800 s cannot be counted exactly/,
    ],
    [
      { algorithm: "sliding-log", overrides: { ann: 10_000_000 } },
      /^overrides\.ann: 10000000 is too many for a log/,
    ],
    [
      { throttle: { kind: "soft", percent: 1000 }, window: "1 week", overrides: { ann: 10 ** 10 } },
      /^overrides\.ann: units in 604800 s cannot be counted exactly|^overrides\.ann: /,
    ],
  ])("cause a problem in the rule %j", (rule, problem) => {
    expect(problemsOf(rule)).toEqual([typeof problem === "string" ? problem : expect.stringMatching(problem)])
  })

  it("may be below the rule's cost if throttling admits more than the limit", () => {
    expect(problemsOf({ cost: 3, throttle: { kind: "soft", percent: 50 }, overrides: { ann: 2 } })).toEqual(
      [],
    )
    expect(problemsOf({ cost: 3, throttle: { kind: "elastic" }, overrides: { ann: 2 } })).toEqual([])
  })

  it("cause one problem for each invalid entry", () => {
    expect(problemsOf({ overrides: { ann: 0, bob: 5, cat: -1 } })).toHaveLength(2)
  })

  it("are copied, so later changes to the given object have no effect", () => {
    const overrides = { ann: { limit: 2 } }
    const { rule } = parseRule({ field: "u", limit: 5, window: 1_000, overrides }, "")
    overrides.ann.limit = 500
    expect(rule?.overrides?.get("ann")).toBe(2)
  })
})
