import { IncomingMessage } from "node:http"
import { Socket } from "node:net"
import { liveRules } from "@sluice/rules"
import { describe, expect, it, vi } from "vitest"
import { InvalidOptionError, type Problem } from "../../ground/errors.ts"
import { manualClock } from "../../ground/manual-clock.ts"
import { parseRuleDocument } from "../../rules/documents/rule-document.ts"
import { memoryStore } from "../../stores/memory/memory-store.ts"
import { peekStore } from "../../stores/peek-store.ts"
import { createLimiter } from "../create-limiter.ts"
import { headerFormats } from "./header-formats.ts"
import { parseInlineRule, parseOptions } from "./parse-options.ts"

const RULE = { limit: 5, window: "1m" }
/** A rule in a list, where a field is required. */
const LISTED = { field: "service", ...RULE }

function problemsOf(options: unknown): readonly Problem[] {
  try {
    parseOptions(options)
  } catch (error) {
    if (error instanceof InvalidOptionError) return error.problems
    throw error
  }
  return []
}

const LIMIT = "a positive whole number below 2^53, or a function that returns one for a request"
const WINDOW =
  'a positive whole number of milliseconds, or a string such as "90 seconds", "1 minute", "15m", "1h", "1 day", "2 weeks", or a function that returns one for a request'
const COST = "0 or a positive whole number, or a function that returns one for a request"
const PRIORITY =
  "a whole number from -1000 to 1000, or a function that returns one for a request, not a promise"
const DIALECT = '"draft-11", "next", "triple", "legacy", { dialect, prefix, names }, a list of them, or false'
const TIME = "a whole number of milliseconds from 1 to 2147483647"
const CLOCK =
  "{ now(): epoch milliseconds, wait?(ms, signal) }, such as manualClock() of @sluice/core/testing"
const LOGGER = "an object with warn() and error(), such as pino's"
const STORE = "memoryStore(), redisStore({ client }) or another Store"
const SERVICE = "a non-empty string, or a number below 2^53"
const INSTANCES = "a positive whole number"
const FIELD_AND_FUNCTION =
  'a name, with the function that reads it in "fields": { field: "user_id", fields: { user_id: (request) => … } }'
const NAMES =
  "name, field, limit, window, per, timeZone, anchor, concurrent, hold, match, allow, deny, overrides, onMissing, counts, algorithm, align, buckets, burst, refill, throttle, countRejected, penalty, notify, shadow, rejectionMessage, " +
  "rules, defaultRules, onRulesMissing, service, store, trustedProxies, clientIpHeader, ipv6Prefix, fields, cost, units, priority, skip, callbackTimeoutMs, rejection, onRejected, refundWhen, " +
  "headers, onStoreFailure, storeTimeoutMs, instances, enabled, logger, clock"

/** A request counts as one, and there is no other unit. */
const ONE_EACH = {
  amountOf: (unit: string) => (unit === "requests" ? 1 : undefined),
  unitNames: undefined,
}

describe("an invalid option", () => {
  it.each<[option: string, value: unknown, message: string, accepted: string]>([
    // Members of the inline rule. The tests parse-rule.test.ts and throttle.test.ts cover these members in detail.
    ["limit", 0, "0 is not a limit", LIMIT],
    ["limit", undefined, "is missing", LIMIT],
    ["window", "5 minuts", '"5 minuts" is not a window', WINDOW],
    ["limit", Number.NaN, "NaN is not a limit; it was computed from a missing value or from text", LIMIT],
    ["limit", "5", '"5" is not a limit; it is a string, use the number 5', LIMIT],
    ["limit", 5n, "5n is not a limit", LIMIT],
    ["buckets", 361, "361 is not a valid number of sub-windows", "a whole number from 2 to 360"],
    ["shadow", "yes", '"yes" is not a boolean; it is a string, use true', "true or false"],
    ["cost", -1, "-1 is not a cost", COST],
    ["cost", 1.5, "1.5 is not a cost", COST],
    ["cost", 2 ** 53, "9007199254740992 is not a cost", COST],
    ["cost", "2", '"2" is not a cost; it is a string, use the number 2', COST],
    ["service", "", '"" is not a service', SERVICE],
    ["service", null, "null is not a service", SERVICE],
    ["service", 2 ** 53, '9007199254740992 is not a service; use "9007199254740992"', SERVICE],
    [
      "service",
      Number.NaN,
      "NaN is not a service; it was computed from a missing value or from text",
      SERVICE,
    ],
    ["store", {}, "{} is not a store", STORE],
    ["store", null, "null is not a store", STORE],
    ["store", "memory", '"memory" is not a store', STORE],
    [
      "trustedProxies",
      true,
      "true is not a valid value for trustedProxies; use their number, such as 1",
      expect.stringContaining("the number of proxies") as never,
    ],
    [
      "clientIpHeader",
      "x y",
      '"x y" is not the name of a header',
      expect.stringContaining("cf-connecting") as never,
    ],
    [
      "ipv6Prefix",
      0,
      "0 is not a prefix length",
      'a whole number from 1 to 128, or an object such as { default: 64, "2001:db8::/32": 48 }',
    ],
    ["fields", [], "[] is not an object of functions", '{ "user_id": (request) => … }'],
    ["fields", "user_id", '"user_id" is not an object of functions', '{ "user_id": (request) => … }'],
    ["priority", 1_001, "1001 is not a priority", PRIORITY],
    ["priority", 0.5, "0.5 is not a priority", PRIORITY],
    ["priority", "high", '"high" is not a priority', PRIORITY],
    ["skip", true, "true is not a function", "(request) => boolean"],
    [
      "onRejected",
      null,
      "null is not a function",
      "(request, rejection, decision, response) => a rejection, false or undefined",
    ],
    ["refundWhen", 400, "400 is not a function", "(request, status) => boolean"],
    ["headers", "draft-7", '"draft-7" is not a header dialect', DIALECT],
    ["headers", true, "true is not a header dialect; leave it out for the default headers", DIALECT],
    ["onStoreFailure", "fail", '"fail" is not a valid value', '"local", "allow", "deny"'],
    ["storeTimeoutMs", 0, "0 is not a time", TIME],
    ["storeTimeoutMs", 0.5, "0.5 is not a time", TIME],
    ["storeTimeoutMs", 2 ** 31, "2147483648 is not a time", TIME],
    ["storeTimeoutMs", Number.POSITIVE_INFINITY, "Infinity is not a time", TIME],
    ["instances", 0, "0 is not a number of instances", INSTANCES],
    ["instances", 1.5, "1.5 is not a number of instances", INSTANCES],
    ["enabled", "false", '"false" is not a boolean; it is a string, use false', "true or false"],
    ["enabled", 0, "0 is not a boolean", "true or false"],
    ["logger", () => 1, "a function is not a logger", LOGGER],
    ["logger", { warn() {} }, "{} is not a logger", LOGGER],
    ["clock", {}, "{} is not a clock", CLOCK],
    ["clock", { now: 5 }, '{"now":5} is not a clock', CLOCK],
    ["clock", { now: () => 1, wait: 5 }, '{"wait":5} is not a clock', CLOCK],
  ])("is rejected: %s of %s", (path, value, message, accepted) => {
    expect(problemsOf({ ...RULE, [path]: value })).toEqual([{ path, message, accepted }])
  })

  it.each([
    ["trustedProxy", "trustedProxies"],
    ["store_timeout_ms", "storeTimeoutMs"],
  ])("is reported with a suggestion instead of the list of all options: %s", (path, meant) => {
    const message = `"${path}" is not a member of the options; did you mean "${meant}"?`
    expect(problemsOf({ ...RULE, [path]: 1 })).toEqual([{ path, message }])
  })

  it.each(["bogus", "constructor", "toString"])(
    "is reported with the nearest name only, even if no name is close: %s",
    (path) => {
      const [problem, ...others] = problemsOf({ ...RULE, [path]: 1 })
      expect(others).toEqual([])
      expect(problem).toEqual({ path, message: expect.any(String) })
      const [, nearest] =
        /^"\w+" is not a member of the options; the nearest is "(\w+)"$/.exec(problem?.message ?? "") ?? []
      expect(NAMES.split(", ")).toContain(nearest)
    },
  )

  it.each(["validate", "requestPropertyName", "exponentialBackoff", "runActionAnyway", "storeType"])(
    "is reported as an option without counterpart if only other rate limiters have it: %s",
    (path) => {
      expect(problemsOf({ ...RULE, [path]: 1 })[0]?.message).toMatch(
        new RegExp(`^"${path}" is not a member of the options; no counterpart: `),
      )
    },
  )

  it.each([
    ["max", "limit"],
    ["points", "limit"],
    ["windowMs", "window"],
    ["timeWindow", "window"],
    ["duration", "window"],
    ["keyGenerator", "field", "fields"],
    ["message", "rejection", "rejectionMessage"],
    ["handler", "onRejected"],
    ["statusCode", "rejection"],
    ["errorResponseBuilder", "rejection"],
    ["skipSuccessfulRequests", "refundWhen"],
    ["skipFailedRequests", "refundWhen"],
    ["requestWasSuccessful", "refundWhen"],
    ["legacyHeaders", "headers", "legacy"],
    ["standardHeaders", "headers"],
    ["trustProxy", "trustedProxies"],
    ["global", "limit", "window"],
    ["allowList", "allow", "skip"],
    ["whitelist", "skip", "allow"],
    ["blacklist", "deny", "limit"],
    ["whiteList", "allow"],
    ["blackList", "deny"],
    ["isBlackListed", "limit", "deny"],
    ["passOnStoreError", "onStoreFailure"],
    ["ban", "penalty"],
    ["continueExceeding", "countRejected"],
    ["ipv6Subnet", "ipv6Prefix"],
    ["storeClient", "store"],
    ["throw", "onRejected"],
    ["timeoutMs", "storeTimeoutMs"],
    ["maxConcurrent", "concurrent"],
    ["concurrency", "concurrent"],
    ["minTime", "algorithm", "burst"],
    ["reservoir", "limit"],
    ["reservoirRefreshInterval", "window"],
    ["intervalCap", "limit"],
    ["highWater", "maxWaiting"],
  ])("is reported with its name in Sluice if other rate limiters have it: %s", (path, ...names) => {
    const [problem, ...others] = problemsOf({ ...RULE, [path]: 1 })
    expect(others).toEqual([])
    expect(Object.keys(problem as object)).toEqual(["path", "message"])
    expect(problem?.path).toBe(path)
    expect(problem?.message).toMatch(
      new RegExp(`^"${path}" is not a member of the options; (use "|leave out "|nothing is thrown; use ")`),
    )
    expect([...(problem?.message ?? "").matchAll(/"(\w+)"/g)].map(([, name]) => name)).toEqual([
      path,
      ...names,
    ])
  })

  it("is reported with the unit if other rate limiters use another unit", () => {
    const message = '"duration" is not a member of the options; use "window" instead, in milliseconds'
    expect(problemsOf({ ...RULE, duration: 60 })).toMatchObject([
      { message: expect.stringContaining(message) },
    ])
  })

  it("is also reported with its name in Sluice in lists of rules and in routes", () => {
    const ofAll = "an option of the limiter for all its rules"
    const wrong = { max: 5, handler: 1, skip: 1, cache: 1, validate: false, allowList: [] }
    expect(problemsOf({ rules: [{ ...LISTED, ...wrong }] })).toEqual(
      [
        ["max", 'use "limit" instead'],
        ["handler", `use "onRejected" instead, ${ofAll}, or of a Fastify route`],
        ["skip", `it is ${ofAll}`],
        ["cache", 'use "maxKeys" of memoryStore() instead'],
        ["validate", "no counterpart: leave it out"],
        ["allowList", 'use "allow" instead, or "skip" for a function'],
      ].map(([name, here]) => ({
        path: `rules[0].${name}`,
        message: `"${name}" is not a member of a rule; ${here}`,
      })),
    )
    expect(problemsOf({ rules: [{ ...LISTED, handed: 1 }] })).toEqual([
      expect.objectContaining({
        path: "rules[0].handed",
        message: '"handed" is not a member of a rule; the nearest is "name"',
      }),
    ])
    const eleven = Array.from({ length: 11 }, (_, index) => ({ ...LISTED, name: `rule ${index}` }))
    expect(problemsOf({ rules: [...eleven, { ...LISTED, max: 5 }, 7] })).toEqual([
      { path: "rules[11].max", message: '"max" is not a member of a rule; use "limit" instead' },
      expect.objectContaining({ path: "rules[12]" }),
    ])
    const source = liveRules({ load: () => Promise.resolve({ rules: [], problems: [] }) })
    expect(problemsOf({ rules: source, defaultRules: [{ ...LISTED, max: 5 }] })).toEqual([
      { path: "defaultRules[0].max", message: '"max" is not a member of a rule; use "limit" instead' },
    ])
    expect(
      parseInlineRule({ max: 5, timeWindow: "1m" }, ONE_EACH).problems.map(({ message }) => message),
    ).toEqual([
      "is missing",
      "is missing",
      '"max" is not a member of a rule; use "limit" instead',
      '"timeWindow" is not a member of a rule; use "window" instead',
    ])
  })

  it.each<[string, Record<string, unknown>, string, string]>([
    ["fields.max", { fields: { max: 5 } }, "5 is not a function", "(request) => string or number"],
    ["fields.user", { fields: { user: 5 } }, "5 is not a function", "(request) => string or number"],
    [
      "fields.__proto__",
      { fields: JSON.parse('{"__proto__":5}') },
      '"__proto__" is not a name for a field of your own',
      "another name",
    ],
    ["field", { field: () => "a" }, "a function is not a field or a list of fields", FIELD_AND_FUNCTION],
    ["field", { field: { user_id: () => "a" } }, "{} is not a field or a list of fields", FIELD_AND_FUNCTION],
    [
      "fields.ip",
      { fields: { ip: () => 1 } },
      '"ip" is not a name for a field of your own',
      'a name without ":", other than "ip", "service", "method" and "route"',
    ],
    [
      'fields["header:x"]',
      { fields: { "header:x": () => 1 } },
      '"header:x" is not a name for a field of your own',
      'a name without ":", other than "ip", "service", "method" and "route"',
    ],
    [
      "deny[0]",
      { deny: ["192.0.2.400"] },
      '"192.0.2.400" is not an address',
      'an IP address or a CIDR, such as "192.0.2.7", "10.0.0.0/8" or "2001:db8::/32"',
    ],
    [
      "clientIpHeader",
      { clientIpHeader: "cf-connecting-ip" },
      '"cf-connecting-ip" is only read from a trusted proxy, and no proxy is trusted',
      "clientIpHeader together with trustedProxies",
    ],
    [
      "rejection.contentType",
      { rejection: { contentType: "text/html" } },
      "is given without a body",
      "a body too, or no contentType",
    ],
  ])("is rejected inside another option: %s", (path, options, message, accepted) => {
    expect(problemsOf({ ...RULE, ...options })).toEqual([{ path, message, accepted }])
  })

  it.each<[string, Record<string, unknown>, string]>([
    ["refundWhen", { refundWhen: async () => true }, "(request, status) => boolean"],
    ["priority", { priority: async () => 5 }, PRIORITY],
    ["fields", { fields: async () => () => "a" }, '{ "user_id": (request) => … }'],
    [
      "throttle.signal",
      { throttle: { kind: "elastic", signal: async () => true } },
      "a function that returns whether there is spare capacity",
    ],
  ])("is rejected if it is an async function: %s", (path, options, accepted) => {
    const message = "is an async function, but its result is needed immediately"
    expect(problemsOf({ ...RULE, ...options })).toEqual([{ path, message, accepted }])
  })

  it("does not include an async function that a decision waits for", () => {
    const fields = { user_id: async () => "a" }
    const options = { limit: async () => 5, cost: async () => 5, skip: async () => true, fields }
    for (const match of [async () => true, { path: "/", when: async () => true }])
      expect(problemsOf({ ...RULE, ...options, match })).toEqual([])
  })

  it.each<[string, unknown, string, string]>([
    ["match.when", { when: true }, "true is not a function", "(request) => boolean"],
    ["match.whn", { whn: () => true }, '"whn" is not a member of a match; did you mean "when"?', ""],
    ["match", true, "true is not a match", "an object with methods, path, fields, when"],
  ])("is reported in a match with a function: %s", (path, match, message, accepted) => {
    expect(problemsOf({ ...RULE, match })).toEqual([{ path, message, ...(accepted && { accepted }) }])
  })

  it("is reported together with all others, of rules and options alike", () => {
    const options = { limit: 0, window: "x", cost: -1, headers: "x", ipv6Prefix: 0, skp: 1, instances: "2" }
    expect(problemsOf(options).map(({ path }) => path)).toEqual([
      "cost",
      "headers",
      "instances",
      "skp",
      "ipv6Prefix",
      "limit",
      "window",
    ])
    expect(() => parseOptions(options)).toThrow(
      /^Wrong options:\n {2}- cost: -1 is not a cost; accepted: 0 or a positive whole/,
    )
  })

  it("is reported with its index in a list of rules", () => {
    const rules = [LISTED, { field: "ip", limit: 5 }, null, { ...LISTED, shaddow: true }]
    expect(problemsOf({ rules, cost: -1 }).map(({ path, message }) => `${path} ${message}`)).toEqual([
      "cost -1 is not a cost",
      "rules[1].window is missing",
      "rules[2] null is not a rule",
      'rules[3].shaddow "shaddow" is not a member of a rule; did you mean "shadow"?',
      'rules[3].name "service-1m", the default name, is already the name of rule [0]',
    ])
  })

  const source = liveRules({ load: async () => ({ rules: [], problems: [] }) })
  it.each<[place: string, options: object]>([
    ["rules[1]", { rules: [LISTED, RULE] }],
    ["rules[1]", { rules: [LISTED, { ...RULE, field: undefined }] }],
    ["defaultRules[0]", { rules: source, defaultRules: [RULE] }],
  ])("is reported for a listed rule without a field, in code: %s", (place, options) => {
    expect(problemsOf(options)).toEqual([
      {
        path: `${place}.field`,
        message: "is missing",
        accepted:
          '"ip" to limit each client address, "service" to limit all requests together, or another field',
      },
    ])
  })

  it("is reported for a missing field only if rules would share a default name or block the whole service", () => {
    const penalty = { refusals: 3, for: "1 hour" }
    expect(problemsOf({ rules: [RULE, { ...RULE, penalty }] }).map(({ path }) => path)).toEqual([
      "rules[0].field",
      "rules[1].field",
    ])
  })

  it("is not reported for the rules of a document without fields, which are passed on as a list", () => {
    expect(problemsOf({ rules: parseRuleDocument({ rules: [RULE] }) })).toEqual([])
    expect(parseOptions({ rules: parseRuleDocument({ rules: [RULE] }) }).rules).toMatchObject([
      { name: "service-1m", fields: [] },
    ])
  })

  it.each<[what: string, options: object, units: number, name: string, most: number, largest: number]>([
    ["inline", { ...RULE, field: "ip", cost: 6 }, 6, "ip-1m", 5, 5],
    ["of a list", { rules: [LISTED, { ...LISTED, name: "b", limit: 9 }], cost: 6 }, 6, "service-1m", 5, 5],
    ["with its own cost", { rules: [{ ...LISTED, cost: 2 }], cost: 3 }, 6, "service-1m", 5, 2],
    [
      "with a burst",
      { ...RULE, field: "ip", algorithm: "token-bucket", burst: 7, cost: 8 },
      8,
      "ip-1m",
      7,
      7,
    ],
    [
      "of the defaults",
      {
        rules: liveRules({ load: async () => ({ rules: [], problems: [] }) }),
        defaultRules: [LISTED],
        cost: 6,
      },
      6,
      "service-1m",
      5,
      5,
    ],
  ])(
    "is reported for a fixed cost that a rule never admits: %s",
    (_what, options, units, name, most, largest) => {
      const { cost } = options as { cost: number }
      const message = `a request of cost ${cost} takes ${units} units of rule "${name}", which never admits more than ${most}`
      expect(problemsOf(options)).toEqual([
        { path: "cost", message, accepted: `0 to ${largest}, or a function` },
      ])
    },
  )

  it.each<[what: string, options: object]>([
    ["as much as the limit", { ...RULE, cost: 5 }],
    ["a function", { ...RULE, cost: () => 6 }],
    ["what a soft rule still admits", { ...RULE, cost: 6, throttle: { kind: "soft", percent: 20 } }],
    ["of a limit that varies", { ...RULE, limit: () => 5, cost: 6 }],
  ])("is not reported for a cost that may fit: %s", (_what, options) => {
    expect(problemsOf({ field: "ip", ...options })).toEqual([])
  })

  it("is reported for any rule member next to `rules`, unless limiters also have it", () => {
    expect(problemsOf({ ...RULE, field: "ip", rules: [], cost: 2, onStoreFailure: "deny" })).toEqual(
      ["field", "limit", "window"].map((path) => ({
        path,
        message: 'is given together with "rules"',
        accepted: `"${path}" as a member of a rule in "rules", or an inline rule without "rules"`,
      })),
    )
  })

  it("is reported for defaultRules or onRulesMissing with rules that never change", () => {
    const problem = {
      path: "defaultRules",
      message: "has no effect with rules that never change",
      accepted: 'fileRules(…), dynamoDBRules(…) or a rule book in "rules", or no defaultRules',
    }
    expect(problemsOf({ ...RULE, defaultRules: [LISTED] })).toEqual([problem])
    expect(problemsOf({ rules: [LISTED], defaultRules: [LISTED] })).toEqual([problem])
    const path = "onRulesMissing"
    const accepted = 'fileRules(…), dynamoDBRules(…) or a rule book in "rules", or no onRulesMissing'
    expect(problemsOf({ ...RULE, onRulesMissing: "deny" })).toEqual([{ ...problem, path, accepted }])
    expect(problemsOf({ ...RULE, service: "", onRulesMissing: "deny" })).toMatchObject([
      { path: "service" },
      { path },
    ])
  })

  it("is reported if the options do not define what applies until the rules of a network source are loaded", () => {
    const rules = liveRules({ load: async () => ({ rules: [], problems: [] }) })
    expect(problemsOf({ rules })).toMatchObject([{ path: "onRulesMissing" }])
    expect(problemsOf({ rules, onRulesMissing: "allow" })).toEqual([])
    const local = liveRules({
      load: async () => ({ rules: [], problems: [] }),
      loadSync: () => ({ rules: [], problems: [] }),
    })
    expect(problemsOf({ rules: local })).toEqual([])
  })

  it("is reported if `rules` is the name of a file, with a hint on how to read it", () => {
    const accepted = 'fileRules("rules.yaml") from @sluice/rules, or a list of rules'
    const message = '"rules.yaml" is not a valid value for rules'
    expect(problemsOf({ rules: "rules.yaml" })).toEqual([{ path: "rules", message, accepted }])
  })

  it.each([5, "", {}, null, { load: 5 }])("is reported for %j for rules", (rules) => {
    expect(problemsOf({ rules })).toMatchObject([
      {
        path: "rules",
        accepted:
          "a list of rules, fileRules(…) from @sluice/rules, dynamoDBRules(…) from @sluice/dynamodb, or a rule book",
      },
    ])
  })

  it("is reported once for a source that limiters cannot open, with a hint on how to pass it", () => {
    const rules = { load: async () => ({ rules: [], problems: [] }) }
    const problem = {
      path: "rules",
      message: "{} is not a valid value for rules",
      accepted: "liveRules(source) from @sluice/rules, for a source of your own",
    }
    expect(problemsOf({ rules })).toEqual([problem])
    expect(problemsOf({ rules, onRulesMissing: "deny" })).toEqual([problem])
    expect(problemsOf({ rules: { ...rules, open: async () => undefined } })).toEqual([problem])
  })

  it.each<[unknown, string]>([
    [null, "null is not the options"],
    [[], "[] is not the options"],
    ["text", '"text" is not the options'],
    [5, "5 is not the options"],
    [() => 1, "a function is not the options"],
  ])("is reported for %s as the options, once", (options, message) => {
    expect(problemsOf(options)).toEqual([
      { path: "", message, accepted: "an object with name, field, limit, window, per, …" },
    ])
  })

  it("is reported for missing options and for an object of another class, without its contents", () => {
    const accepted = 'an object such as { limit: 100, window: "1 minute" }'
    const uncalled = `${accepted}; mount the result of rateLimit(options), not rateLimit itself`
    const request = Object.assign(new IncomingMessage(new Socket()), { headers: { cookie: "secret" } })
    const context: unknown = Object.create({ app: {} }, { req: { value: request, enumerable: true } })
    expect(problemsOf(undefined)).toEqual([{ path: "", message: "no options were given", accepted }])
    expect(problemsOf(request)).toEqual([
      { path: "", message: "an instance of IncomingMessage is not an options object", accepted: uncalled },
    ])
    expect(problemsOf(context)).toEqual([
      { path: "", message: "an object is not an options object", accepted: uncalled },
    ])
  })

  it("is reported for a limiter, with a hint on how to share it", () => {
    const problem = {
      path: "",
      message: "a limiter is not an options object",
      accepted: "{ limiter }, to share it",
    }
    expect(problemsOf(createLimiter(RULE))).toEqual([problem])
  })

  it("is reported for a missing limit in a plain object", () => {
    for (const plain of [{}, Object.create(null)]) {
      expect(problemsOf(plain).map(({ path, message }) => `${path} ${message}`)).toEqual([
        "limit is missing",
        "window is missing",
      ])
    }
  })

  it.each(["limit", "window", "rules"])(
    "is reported for a %s in an object of a class, as in a plain object",
    (name) => {
      const ours = new (class Ours {})()
      expect(problemsOf(Object.assign(ours, { [name]: 0 })).map(({ path }) => path)).toContain(name)
      expect(parseOptions(Object.assign(new (class Ours {})(), RULE)).inline).toMatchObject({ limit: 5 })
      expect(parseOptions(Object.assign(Object.create(null), RULE)).inline).toMatchObject({ limit: 5 })
    },
  )

  it("is reported for a Redis client or URL as the store, with a hint and without the password", () => {
    const accepted = "redisStore({ client }) from @sluice/redis, with a client of ioredis or node-redis"
    class Redis {
      readonly options = { password: "secret" }
      duplicate(): Redis {
        return new Redis()
      }
    }
    expect(problemsOf({ ...RULE, store: new Redis() })).toEqual([
      { path: "store", message: "an instance of Redis is not a store but a Redis client", accepted },
    ])
    expect(problemsOf({ ...RULE, store: "redis://:secret@localhost" })).toEqual([
      { path: "store", message: '"redis://…@localhost" is not a store but a URL', accepted },
    ])
    expect(problemsOf({ ...RULE, store: "rediss://localhost" })).toMatchObject([{ accepted }])
    expect(problemsOf({ ...RULE, store: new URL("redis://:secret@localhost") })).toEqual([
      { path: "store", message: "an instance of URL is not a store but a URL", accepted },
    ])
    expect(problemsOf({ ...RULE, store: Object.create(null) })).toMatchObject([{ accepted: STORE }])
    expect(problemsOf({ ...RULE, store: "see redis://localhost" })).toMatchObject([
      { message: '"see redis://localhost" is not a store', accepted: STORE },
    ])
  })

  it("is reported for a key that would change a prototype", () => {
    const options: unknown = JSON.parse('{ "limit": 5, "window": "1m", "__proto__": { "skip": 1 } }')
    expect(problemsOf(options)).toEqual([
      { path: "__proto__", message: '"__proto__" is not a member of the options; the nearest is "per"' },
    ])
  })
})

describe("options", () => {
  it("have defaults", () => {
    const { store, clock, wallClock, inline, ...rest } = parseOptions(RULE)
    expect(inline).toMatchObject({ name: "ip-1m", limit: 5, windowMs: 60_000, fields: ["ip"] })
    expect(rest).toEqual({
      rules: [],
      untilLoaded: { defaultRules: [], onRulesMissing: "allow" },
      service: "default",
      ownsStore: true,
      clientAddress: {},
      extractorOf: expect.any(Function),
      extractorNames: [],
      hasExtractors: false,
      hashKeys: undefined,
      hashSecret: "",
      amountOf: expect.any(Function),
      unitNames: undefined,
      priority: 0,
      skip: undefined,
      rejection: {},
      onRejected: undefined,
      refundWhen: undefined,
      headers: headerFormats("draft-11"),
      onStoreFailure: "local",
      storeTimeoutMs: 50,
      callbackTimeoutMs: 1_000,
      instances: 1,
      enabled: true,
      logger: undefined,
    })
    expect(peekStore(store, [])).toMatchObject({ granted: true })
    expect(Math.abs(clock.now() - wallClock())).toBeLessThan(60_000)
    // A steady clock does not follow corrections of the system time.
    const now = vi.spyOn(Date, "now").mockReturnValue(5)
    expect(wallClock()).toBe(5)
    now.mockRestore()
  })

  it("contain the exact text of a service that is a number", () => {
    expect(parseOptions({ ...RULE, service: 2 ** 53 - 1 }).service).toBe("9007199254740991")
  })

  it("are kept as given", () => {
    const clock = manualClock(1_000)
    const given = {
      service: 7,
      store: memoryStore({ clock }),
      cost: 0,
      headers: false,
      enabled: false,
      storeTimeoutMs: 1,
      instances: 3,
      onStoreFailure: "deny",
      clock,
      trustedProxies: 1,
      ipv6Prefix: 56,
      clientIpHeader: "cf-connecting-ip",
    }
    const parsed = parseOptions({ ...given, ...RULE, field: "route" })
    const { trustedProxies, ipv6Prefix, clientIpHeader, headers: _none, cost, ...others } = given
    expect(parsed.headers).toEqual([])
    expect(parsed).toMatchObject({
      ...others,
      unitNames: undefined,
      service: "7",
      ownsStore: false,
      clientAddress: { trustedProxies, ipv6Prefix, clientIpHeader },
      inline: { fields: ["route"] },
    })
    expect(parsed.amountOf("requests")).toBe(cost)
    expect(parsed.store).toBe(given.store)
    expect(parsed.wallClock()).toBe(1_000)
  })

  it("become a route's rule, with defaults for an undefined name and field", () => {
    const rule = { ...RULE, name: undefined, field: undefined }
    expect(parseInlineRule(rule, ONE_EACH, "GET /x").rule).toMatchObject({ name: "GET /x", fields: ["ip"] })
    expect(parseInlineRule({ ...rule, name: "own" }, ONE_EACH, "GET /x").rule).toMatchObject({ name: "own" })
  })

  it("are read from inherited properties, and from objects without a prototype", () => {
    expect(problemsOf(Object.create(RULE))).toEqual([])
    expect(problemsOf(Object.assign(Object.create(null), RULE))).toEqual([])
  })

  it("pass the limiter's clock to the store that it creates", () => {
    const { store } = parseOptions({ ...RULE, clock: manualClock(5_000) })
    expect(store.take([])).toMatchObject({ nowMs: 5_000 })
  })

  it("accept a function with methods as an object, such as Date as a clock", () => {
    expect(problemsOf({ ...RULE, clock: Date })).toEqual([])
  })
})
