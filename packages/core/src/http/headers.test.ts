import fc from "fast-check"
import { type BareItem, type Item, parseItem, parseList } from "structured-headers"
import { describe, expect, it } from "vitest"
import type { Decision, PolicyCheck } from "../decision/decision.ts"
import type { HeaderLine } from "../ground/answer.ts"
import { PERMITS } from "../ground/policy.ts"
import { HEADER_DIALECTS, type HeaderDialect, headerFormats } from "../limiter/options/header-formats.ts"
import type { HeaderPolicy } from "./headers/header-values.ts"
import { compileHeaders, exposedHeaders } from "./headers.ts"

const MINUTE = 60_000
const HOUR = 3_600_000
const DAY = 86_400_000
const MAX_INTEGER = 999_999_999_999_999

describe("draft-11", () => {
  it.each<[string, HeaderPolicy[], string]>([
    [
      "two policies",
      [policy("burst", 100, MINUTE), policy("daily", 1000, DAY)],
      '"burst";q=100;w=60, "daily";q=1000;w=86400',
    ],
    [
      "two policies, the longer window first",
      [policy("perhr", 1000, HOUR), policy("permin", 50, MINUTE)],
      '"perhr";q=1000;w=3600, "permin";q=50;w=60',
    ],
    ["a window that is not a whole number of seconds", [policy("a", 5, 1500)], '"a";q=5;w=2'],
    ["a window shorter than a second", [policy("a", 5, 200)], '"a";q=5;w=1'],
    ["a name with quotes and backslashes", [policy('a"b\\c', 5, 1000)], '"a\\"b\\\\c";q=5;w=1'],
    ["a limit that has 16 digits", [policy("a", 2 ** 53 - 1, 1000)], `"a";q=${MAX_INTEGER};w=1`],
    ["another unit than requests", [unitPolicy("a", "tokens")], '"a";q=5;qu="tokens";w=1'],
    ["a unit that the draft registers", [unitPolicy("a", "bytes")], '"a";q=5;qu="content-bytes";w=1'],
    [
      "several units",
      [policy("a", 5, 1000), unitPolicy("b", "tokens")],
      '"a";q=5;w=1, "b";q=5;qu="tokens";w=1',
    ],
    ["permits", [unitPolicy("a", PERMITS)], '"a";q=5;qu="concurrent-requests"'],
    [
      "permits beside requests and tokens",
      [policy("rpm", 60, MINUTE), unitPolicy("tpm", "tokens"), unitPolicy("in-flight", PERMITS)],
      '"rpm";q=60;w=60, "tpm";q=5;qu="tokens";w=1, "in-flight";q=5;qu="concurrent-requests"',
    ],
    ["a limit that varies per request", [{ ...policy("a", 0, 1000), limit: undefined }], '"a";q=77;w=1'],
  ])("writes RateLimit-Policy for %s", (_case, policies, expected) => {
    const checks = policies.map(({ name, windowMs, limit = 77 }) =>
      check({ policy: name, windowMs: windowMs as number, limit }),
    )
    expect(fields("draft-11", policies, admitted(checks))["RateLimit-Policy"]).toBe(expected)
  })

  it("writes the window of each check if a function returns the window", () => {
    const policies = [{ ...policy("plan", 5, MINUTE), windowMs: undefined }]
    for (const windowMs of [MINUTE, DAY, MINUTE]) {
      const decision = admitted([check({ policy: "plan", windowMs, limit: 5 })])
      const w = `w=${windowMs / 1_000}`
      expect(fields("draft-11", policies, decision)["RateLimit-Policy"]).toBe(`"plan";q=5;${w}`)
      expect(fields("triple", policies, decision)["RateLimit-Policy"]).toBe(`5;${w}`)
    }
  })

  it("writes the limit of the client's override instead of the rule's limit", () => {
    const policies = [policy("burst", 100, MINUTE), policy("daily", 1000, DAY)]
    const limits = [77, 1000]
    const checks = policies.map(({ name, windowMs }, i) =>
      check({ policy: name, windowMs: windowMs as number, limit: limits[i] as number }),
    )
    expect(fields("draft-11", policies, admitted(checks))["RateLimit-Policy"]).toBe(
      '"burst";q=77;w=60, "daily";q=1000;w=86400',
    )
    expect(fields("draft-11", policies.slice(0, 1), admitted(checks.slice(0, 1)))["RateLimit-Policy"]).toBe(
      '"burst";q=77;w=60',
    )
    expect(fields("legacy", policies.slice(0, 1), admitted(checks.slice(0, 1)))).toMatchObject({
      "X-RateLimit-Limit": "77",
    })
  })

  it.each<[string, Partial<PolicyCheck>, string]>([
    // The remaining units and the parameter t of an admitted check.
    ["half of the units are left", { remaining: 50, nextUnitAfterMs: 1 }, ";r=50;t=30"],
    [
      "the next unit comes later than its share of the window",
      { remaining: 50, nextUnitAfterMs: 45_000 },
      ";r=50;t=45",
    ],
    [
      "the next unit does not come at a full second",
      { remaining: 50, nextUnitAfterMs: 44_001 },
      ";r=50;t=45",
    ],
    ["all units are left", { remaining: 100, nextUnitAfterMs: 0 }, ";r=100;t=60"],
    [
      "the share of the window is not a whole number of seconds",
      { remaining: 1, limit: 7, nextUnitAfterMs: 100 },
      ";r=1;t=9",
    ],
    ["the window is shorter than a second", { remaining: 9, windowMs: 300, nextUnitAfterMs: 20 }, ";r=9;t=1"],
    ["no units are left", { remaining: 0, nextUnitAfterMs: 12_001 }, ";r=0;t=13"],
    ["no units are left for 1 ms", { remaining: 0, nextUnitAfterMs: 1 }, ";r=0;t=1"],
    [
      "no unit will ever be available",
      { remaining: 0, limit: 0, nextUnitAfterMs: Number.POSITIVE_INFINITY },
      ";r=0",
    ],
    [
      "the numbers have more than 15 digits",
      { remaining: 2 ** 53 - 1, limit: 2 ** 53 - 1, nextUnitAfterMs: 2e18 },
      `;r=${MAX_INTEGER};t=${MAX_INTEGER}`,
    ],
    // a refused check
    [
      "the request is refused for 12 s",
      { allowed: false, retryAfterMs: 12_000, nextUnitAfterMs: 7 },
      ";r=0;t=12",
    ],
    ["the request is refused for 12 s and 1 ms", { allowed: false, retryAfterMs: 12_001 }, ";r=0;t=13"],
    ["the request is refused for a millisecond", { allowed: false, retryAfterMs: 1 }, ";r=0;t=1"],
    [
      "the request is refused because it costs more units than are left",
      { allowed: false, cost: 5, remaining: 3, retryAfterMs: 2000 },
      ";r=0;t=2",
    ],
    [
      "the request is refused forever",
      { allowed: false, refusal: "cost", retryAfterMs: Number.POSITIVE_INFINITY },
      ";r=0",
    ],
    [
      "a deny list refuses the request",
      { allowed: false, refusal: "denied", retryAfterMs: Number.POSITIVE_INFINITY },
      ";r=0",
    ],
    [
      "the wait of the refusal has more than 15 digits",
      { allowed: false, retryAfterMs: 2e18 },
      `;r=0;t=${MAX_INTEGER}`,
    ],
  ])("writes the remaining units and the time if %s", (_case, members, expected) => {
    const only = check({ policy: "p", ...members })
    const policies = [policy("p", only.limit, only.windowMs)]
    const decision = only.allowed ? admitted([only]) : refused([only])
    expect(fields("draft-11", policies, decision).RateLimit).toBe(`"p"${expected}`)
  })

  it.each(HEADER_DIALECTS)("omits a counter that was not read: %s", (dialect) => {
    const policies = [policy("user", 1, MINUTE), policy("overall", 500, MINUTE)]
    const user = check({ policy: "user", limit: 1, allowed: false, remaining: 0, retryAfterMs: 9_000 })
    const overall = check({ policy: "overall", limit: 500, remaining: undefined })
    const lines = JSON.stringify(fields(dialect, policies, refused([user, overall])))
    expect(lines).not.toMatch(/undefined|NaN|"overall\\";r|"overall\\";a/)
    expect(lines).toContain("9")
  })

  it("writes the one rule that applies, even if it is not the first rule", () => {
    const write = compileHeaders(headerFormats("draft-11"), [
      policy("hour", 1000, HOUR),
      policy("day", 5000, DAY),
    ])
    const [hour, day] = [
      check({ policy: "hour", limit: 1000, windowMs: HOUR, remaining: 0, nextUnitAfterMs: 5000 }),
      check({ policy: "day", limit: 5000, windowMs: DAY, remaining: 0, nextUnitAfterMs: 5000 }),
    ]
    for (const [only, told] of [
      [hour, ['"hour";q=1000;w=3600', '"hour";r=0;t=5']],
      [day, ['"day";q=5000;w=86400', '"day";r=0;t=5']],
      [hour, ['"hour";q=1000;w=3600', '"hour";r=0;t=5']],
    ] as const) {
      expect(write(admitted([only]), () => 0).map(([, value]) => value)).toEqual(told)
    }
  })

  it("omits the wait of a permanent refusal, and writes the wait of the next temporary refusal", () => {
    const write = compileHeaders(headerFormats("draft-11"), [policy("p", 100, MINUTE)])
    const waits = [2000, 2000, Number.POSITIVE_INFINITY, 2000, 3000]
    const told = waits.map((retryAfterMs) => {
      const [, limit] = write(refused([check({ policy: "p", allowed: false, retryAfterMs })]), () => 0)
      return limit?.[1]
    })
    expect(told).toEqual(['"p";r=0;t=2', '"p";r=0;t=2', '"p";r=0', '"p";r=0;t=2', '"p";r=0;t=3'])
  })

  it.each<[HeaderDialect, Partial<PolicyCheck>[], string[]]>([
    [
      "draft-11",
      [{ remaining: 50 }, { remaining: 49 }, { remaining: 50 }],
      [";r=50;t=30", ";r=49;t=30", ";r=50;t=30"],
    ],
    [
      "draft-11",
      [{ remaining: 0 }, { remaining: 1 }, { remaining: 0 }],
      [";r=0;t=30", ";r=1;t=30", ";r=0;t=30"],
    ],
    ["next", [{ remaining: 0 }, { remaining: 0, cost: 2 }], [";a=0;w=30;c=1", ";a=0;w=30;c=2"]],
    [
      "next",
      [refusing(30_000), { ...refusing(30_000), cost: 2 }, { remaining: 1, cost: 2 }, refusing(30_000)],
      [";a=0;w=30;c=1", ";a=0;w=30;c=2", ";a=1;w=30;c=2", ";a=0;w=30;c=1"],
    ],
  ])("writes the numbers of each request within one second: %s", (dialect, checks, expected) => {
    const write = compileHeaders(headerFormats(dialect), [policy("p", 100, MINUTE)])
    const told = checks.map((members) => {
      const only = check({ policy: "p", limit: 100, windowMs: MINUTE, nextUnitAfterMs: 30_000, ...members })
      const decision = only.allowed ? admitted([only]) : refused([only])
      return write(decision, () => 0).find(([name]) => name === "RateLimit")?.[1]
    })
    expect(told).toEqual(expected.map((text) => `"p"${text}`))
  })

  it("names only the policy that is closest to exhaustion, here a daily quota with 100 units left", () => {
    const policies = [policy("hour", 1000, HOUR), policy("day", 5000, DAY)]
    const hour = check({ policy: "hour", limit: 1000, windowMs: HOUR, remaining: 800 })
    const day = check({
      policy: "day",
      limit: 5000,
      windowMs: DAY,
      remaining: 100,
      nextUnitAfterMs: 10 * HOUR,
    })
    expect(fields("draft-11", policies, admitted([hour, day], "day"))).toEqual({
      "RateLimit-Policy": '"hour";q=1000;w=3600, "day";q=5000;w=86400',
      RateLimit: '"day";r=100;t=36000',
    })
  })
})

const POLICIES = [
  policy("a", 100, MINUTE),
  policy("b", 10, MINUTE),
  policy("c", 500, HOUR),
  shadowPolicy("s"),
]
const A = check({ policy: "a", remaining: 50 })
const B = check({ policy: "b", limit: 10, remaining: 3, cost: 2 })
const C = check({ policy: "c", limit: 500, windowMs: HOUR, remaining: 480 })
const S = check({ policy: "s", shadow: true, allowed: false, retryAfterMs: 99_000 })
const A_REFUSED = { ...A, ...refusing(12_300) }
const B_REFUSED = { ...B, ...refusing(20_001) }
const C_NEVER = { ...C, cost: 501, ...refusing(Number.POSITIVE_INFINITY), refusal: "cost" as const }
const A_MISSING = { ...A, ...refusing(Number.POSITIVE_INFINITY), refusal: "missing-field" as const }
const A_STORE_GONE = { ...A, ...refusing(1000), refusal: "store-failure" as const }
const ALL = '"a";q=100;w=60, "b";q=10;w=60, "c";q=500;w=3600'
const ALL_TRIPLE = "100;w=60, 10;w=60, 500;w=3600"
// 0.3 s into a second. The legacy reset counts from the next full second.
const NOW_MS = 1_700_000_000_300

describe.each<[string, Decision, Record<HeaderDialect, Record<string, string>>]>([
  [
    "one rule admits the request",
    admitted([A]),
    {
      "draft-11": { "RateLimit-Policy": '"a";q=100;w=60', RateLimit: '"a";r=50;t=30' },
      next: { "RateLimit-Policy": '"a";q=100;w=60', RateLimit: '"a";a=50;w=30;c=1' },
      triple: {
        "RateLimit-Limit": "100",
        "RateLimit-Remaining": "50",
        "RateLimit-Reset": "30",
        "RateLimit-Policy": "100;w=60",
      },
      legacy: {
        "X-RateLimit-Limit": "100",
        "X-RateLimit-Remaining": "50",
        "X-RateLimit-Reset": "1700000031",
      },
    },
  ],
  [
    "several rules admit the request and a shadow rule does not",
    admitted([A, S, B, C], "b"),
    {
      "draft-11": { "RateLimit-Policy": ALL, RateLimit: '"b";r=3;t=18' },
      next: { "RateLimit-Policy": ALL, RateLimit: '"b";a=3;w=18;c=2' },
      triple: {
        "RateLimit-Limit": "10",
        "RateLimit-Remaining": "3",
        "RateLimit-Reset": "18",
        "RateLimit-Policy": ALL_TRIPLE,
      },
      legacy: { "X-RateLimit-Limit": "10", "X-RateLimit-Remaining": "3", "X-RateLimit-Reset": "1700000019" },
    },
  ],
  [
    "two of three rules refuse for different times",
    refused([A_REFUSED, B_REFUSED, C, S], "b"),
    {
      "draft-11": { "RateLimit-Policy": ALL, RateLimit: '"a";r=0;t=13, "b";r=0;t=21' },
      next: { "RateLimit-Policy": ALL, RateLimit: '"a";a=0;w=13;c=1, "b";a=0;w=21;c=2' },
      triple: {
        "RateLimit-Limit": "10",
        "RateLimit-Remaining": "0",
        "RateLimit-Reset": "21",
        "RateLimit-Policy": ALL_TRIPLE,
      },
      legacy: { "X-RateLimit-Limit": "10", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1700000022" },
    },
  ],
  [
    "one of two refusals is permanent",
    refused([A_REFUSED, B, C_NEVER], "c"),
    {
      "draft-11": { "RateLimit-Policy": ALL, RateLimit: '"a";r=0;t=13, "c";r=0' },
      next: { "RateLimit-Policy": ALL, RateLimit: '"a";a=0;w=13;c=1, "c";a=0;c=501' },
      triple: { "RateLimit-Limit": "500", "RateLimit-Remaining": "0", "RateLimit-Policy": ALL_TRIPLE },
      legacy: { "X-RateLimit-Limit": "500", "X-RateLimit-Remaining": "0" },
    },
  ],
  ...(
    [
      ["a degraded decision admits the request", { ...admitted([A]), degraded: true }],
      ["a degraded decision refuses the request", { ...refused([A_REFUSED]), degraded: true }],
      ["the counter was not read", admitted([{ ...A, remaining: undefined }])],
      ["a field is missing", refused([A_MISSING])],
      ["the store is gone", refused([A_STORE_GONE])],
    ] as const
  ).map(([name, decision]): [string, Decision, Record<HeaderDialect, Record<string, string>>] => [
    `no count is known because ${name}`,
    decision,
    {
      "draft-11": { "RateLimit-Policy": '"a";q=100;w=60' },
      next: { "RateLimit-Policy": '"a";q=100;w=60' },
      triple: { "RateLimit-Limit": "100", "RateLimit-Policy": "100;w=60" },
      legacy: { "X-RateLimit-Limit": "100" },
    },
  ]),
  [
    "the limit is unknown because the limit function failed",
    refused([{ ...A_STORE_GONE, limit: 0 }]),
    { "draft-11": {}, next: {}, triple: {}, legacy: {} },
  ],
  ["only a shadow rule applies", admitted([S], ""), { "draft-11": {}, next: {}, triple: {}, legacy: {} }],
  ["no rule applies", admitted([], ""), { "draft-11": {}, next: {}, triple: {}, legacy: {} }],
  [
    "the decision contains an unknown rule",
    admitted([check({ policy: "unknown" })], "unknown"),
    { "draft-11": {}, next: {}, triple: {}, legacy: {} },
  ],
])("the headers when %s", (_case, decision, expected) => {
  it.each(HEADER_DIALECTS)("have the expected values in %s", (dialect) => {
    expect(fields(dialect, POLICIES, decision, () => NOW_MS)).toEqual(expected[dialect])
  })
})

it.each<[HeaderDialect, string, string]>([
  ["triple", "RateLimit-Limit", "RateLimit-Policy"],
  ["legacy", "X-RateLimit-Limit", "X-RateLimit-Limit"],
])("%s writes a limit that varies per request", (dialect, limitField, policyField) => {
  const varying = [{ ...policy("a", 0, MINUTE), limit: undefined }]
  for (const limit of [7, 2 ** 53 - 1]) {
    const written = fields(dialect, varying, admitted([check({ policy: "a", limit })]))
    expect(written[limitField]).toBe(String(Math.min(limit, MAX_INTEGER)))
    expect(parseItemOf(written[policyField])).toBe(Math.min(limit, MAX_INTEGER))
  }
})

it("legacy writes the reset as a Unix time, rounded up to a whole second", () => {
  const reset = (nowMs: number): string | undefined =>
    fields("legacy", [policy("a", 100, MINUTE)], refused([{ ...A, ...refusing(12_000) }]), () => nowMs)[
      "X-RateLimit-Reset"
    ]
  expect(reset(1_000_000)).toBe("1012")
  expect(reset(1_000_001)).toBe("1013")
  expect(reset(1_000_999)).toBe("1013")
  expect(reset(1e18)).toBe(String(MAX_INTEGER))
})

describe("permits", () => {
  const policies = [policy("rpm", 60, MINUTE), unitPolicy("in-flight", PERMITS)]
  const rpm = check({ policy: "rpm", limit: 60, remaining: 9 })
  const inFlight = check({ policy: "in-flight", unit: PERMITS, algorithm: "in-flight", limit: 5 })
  const none = { ...inFlight, ...refusing(1_000), refusal: "in-flight" } as const

  it.each<["draft-11" | "next", string, string]>([
    ["draft-11", '"in-flight";r=0', '"rpm";r=0;t=30'],
    ["next", '"in-flight";a=0;c=1', '"rpm";a=0;w=30;c=1'],
  ])("have no time in %s, because they are released when requests end", (dialect, ofPermits, ofRate) => {
    const limit = (one: PolicyCheck, other: PolicyCheck) =>
      fields(dialect, policies, refused([one, other])).RateLimit
    expect(limit(rpm, none)).toBe(ofPermits)
    expect(limit({ ...rpm, ...refusing(30_000) }, none)).toBe(`${ofRate}, ${ofPermits}`)
    expect(fields(dialect, policies.slice(1), refused([none])).RateLimit).toBe(ofPermits)
  })

  it("are written with the remaining number if no other rule applies", () => {
    const alone = [{ ...inFlight, remaining: 4, nextUnitAfterMs: 1 }]
    expect(fields("draft-11", policies.slice(1), admitted(alone))).toEqual({
      "RateLimit-Policy": '"in-flight";q=5;qu="concurrent-requests"',
      RateLimit: '"in-flight";r=4',
    })
  })

  it.each(["triple", "legacy"] as const)("are not shown in %s, whose fields name no unit", (dialect) => {
    expect(Object.values(fields(dialect, policies, refused([rpm, none], "in-flight"))).slice(0, 2)).toEqual([
      "60",
      "9",
    ])
    expect(fields(dialect, policies.slice(1), refused([none]))).toEqual({})
  })
})

describe.each(["triple", "legacy"] as const)("%s", (dialect) => {
  const policies = [policy("rpm", 60, MINUTE), unitPolicy("tpm", "tokens"), policy("day", 100, DAY)]
  const rpm = check({ policy: "rpm", limit: 60, remaining: 9 })
  const tpm = check({
    policy: "tpm",
    unit: "tokens",
    limit: 5,
    remaining: 0,
    allowed: false,
    retryAfterMs: 9_000,
  })
  const day = check({ policy: "day", limit: 100, windowMs: DAY, remaining: 3 })
  const written = (checks: readonly PolicyCheck[]): Readonly<Record<string, string>> =>
    fields(dialect, policies, refused(checks, "tpm"))

  it("shows the strictest rule that counts requests, because no field names a unit", () => {
    expect(Object.values(written([rpm, tpm, day])).slice(0, 2)).toEqual(["100", "3"])
    expect(JSON.stringify(written([rpm, tpm, day]))).not.toContain("5;w=1")
  })

  it("shows nothing if no rule counts requests", () => {
    expect(written([tpm])).toEqual({})
  })
})

it.each(["draft-11", "next"] as const)(
  "%s rejects a rule name that is invalid in a structured field",
  (dialect) => {
    for (const name of ["häufig", "a\nb", "a\r\nSet-Cookie: x=1"]) {
      expect(() => compileHeaders(headerFormats(dialect), [policy(name, 1, 1000)])).toThrow("ASCII")
    }
  },
)

it("HEADER_DIALECTS lists draft-11 first, because it is the default", () => {
  expect(HEADER_DIALECTS).toEqual(["draft-11", "next", "triple", "legacy"])
})

it.each<[HeaderDialect | false, string[]]>([
  ["draft-11", ["RateLimit-Policy", "RateLimit", "Retry-After"]],
  ["next", ["RateLimit-Policy", "RateLimit", "Retry-After"]],
  [
    "triple",
    ["RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset", "RateLimit-Policy", "Retry-After"],
  ],
  ["legacy", ["X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", "Retry-After"]],
  [false, ["Retry-After"]],
])("exposedHeaders returns the header names for the option %s", (dialect, expected) => {
  expect(exposedHeaders(dialect)).toEqual(expected)
})

it("exposedHeaders rejects an unknown dialect", () => {
  expect(() => exposedHeaders("draft-8" as HeaderDialect)).toThrow(
    'headers: "draft-8" is not a header dialect; accepted: "draft-11", "next", "triple", "legacy", ',
  )
})

describe("headers with any names and numbers", () => {
  const printable = fc.string({
    unit: fc.oneof(
      fc.constantFrom('"', "\\", ",", ";", "=", " "),
      fc.integer({ min: 32, max: 126 }).map((code) => String.fromCharCode(code)),
    ),
    maxLength: 64,
  })
  const amount = fc.oneof(fc.integer({ min: 0, max: 20 }), fc.maxSafeNat())
  const waitMs = fc.oneof(
    fc.integer({ min: 1, max: 5000 }),
    fc.maxSafeNat().map((ms) => ms + 1),
  )
  const rule = fc
    .record({
      policy: printable,
      limit: amount,
      windowMs: fc.oneof(fc.integer({ min: 1, max: 5000 }), fc.integer({ min: 1, max: 40 * DAY })),
      share: fc.integer({ min: 0, max: 100 }),
      cost: amount,
      allowed: fc.boolean(),
      retryAfterMs: fc.oneof(waitMs, fc.constant(Number.POSITIVE_INFINITY)),
      nextUnitAfterMs: waitMs,
      shadow: fc.boolean(),
      varies: fc.boolean(),
    })
    .map(({ share, varies, ...members }) => ({
      varies,
      check: check({
        ...members,
        remaining: Math.floor((members.limit / 100) * share),
        retryAfterMs: members.allowed ? 0 : members.retryAfterMs,
      }),
    }))
  const scene = fc
    .record({
      rules: fc.uniqueArray(rule, { maxLength: 4, selector: ({ check: { policy: name } }) => name }),
      degraded: fc.boolean(),
      nowMs: fc.integer({ min: 0, max: 8.64e15 }),
    })
    .map(({ rules, degraded, nowMs }) => {
      const checks = rules.map(({ check: one }) => one)
      const real = checks.filter(({ shadow }) => !shadow)
      const violated = real.filter(({ allowed }) => !allowed)
      const binding = (violated.length > 0 ? violated : real).at(-1)
      const decision = {
        ...(violated.length > 0 ? refused : admitted)(checks, binding?.policy ?? ""),
        degraded,
      }
      const policies = rules.map(
        ({ varies, check: { policy: name, limit, windowMs, shadow } }): HeaderPolicy => ({
          name,
          limit: varies ? undefined : limit,
          windowMs,
          unit: "requests",
          shadow,
        }),
      )
      return { policies, decision, real, violated, binding, nowMs }
    })

  it.each<["draft-11" | "next", string, string]>([
    ["draft-11", "r", "t"],
    ["next", "a", "w"],
  ])("can be parsed back to the same values in %s", (dialect, remainingKey, secondsKey) => {
    fc.assert(
      fc.property(scene, ({ policies, decision, real, violated, binding }) => {
        const written = fields(dialect, policies, decision)
        const read = readPolicies(written["RateLimit-Policy"] ?? "")
        expect(read).toEqual(
          real.map(({ policy: name, limit, windowMs }) => ({
            name,
            limit: bounded(limit),
            windowS: Math.ceil(windowMs / 1000),
          })),
        )
        const limits = readLimits(written.RateLimit ?? "", remainingKey, secondsKey)
        const listed = decision.degraded
          ? []
          : violated.length > 0
            ? violated
            : real.filter((one) => one === binding)
        expect(limits.map(({ name }) => name)).toEqual(listed.map(({ policy: name }) => name))
        for (const [index, told] of limits.entries())
          tellsTheTruth(told, listed[index] as PolicyCheck, dialect)
      }),
    )
  })

  it.each<["triple" | "legacy", string]>([
    ["triple", "RateLimit-"],
    ["legacy", "X-RateLimit-"],
  ])("can be parsed back to the same values in %s", (dialect, prefix) => {
    fc.assert(
      fc.property(scene, ({ policies, decision, binding, nowMs }) => {
        const written = fields(dialect, policies, decision, () => nowMs)
        if (binding === undefined) {
          expect(written).toEqual({})
          return
        }
        expect(parseItemOf(written[`${prefix}Limit`])).toBe(bounded(binding.limit))
        if (decision.degraded) {
          expect(written[`${prefix}Remaining`]).toBeUndefined()
          expect(written[`${prefix}Reset`]).toBeUndefined()
          return
        }
        const reset = written[`${prefix}Reset`]
        const startS = dialect === "triple" ? 0 : Math.ceil(nowMs / 1000)
        const told = {
          name: binding.policy,
          remaining: parseItemOf(written[`${prefix}Remaining`]) as number,
          seconds: reset === undefined ? undefined : bounded((parseItemOf(reset) as number) - startS),
          cost: undefined,
        }
        tellsTheTruth(told, binding, "draft-11")
      }),
    )
  })

  it("do not depend on the headers that were written before", () => {
    const dialects = fc.constantFrom(...HEADER_DIALECTS)
    fc.assert(
      fc.property(dialects, scene, fc.infiniteStream(fc.nat()), (dialect, { policies, decision }, pick) => {
        const write = compileHeaders(headerFormats(dialect), policies)
        for (let i = 0; i < 6; i++) {
          const one = decision.checks[pick.next().value % Math.max(1, decision.checks.length)]
          const alone = one === undefined ? decision : { ...decision, policy: one.policy, checks: [one] }
          for (const each of [alone, decision]) {
            expect(write(each, () => 0)).toEqual(
              compileHeaders(headerFormats(dialect), policies)(each, () => 0),
            )
          }
        }
      }),
    )
  })

  it("contain only exposed names and no line break, in any dialect", () => {
    fc.assert(
      fc.property(fc.constantFrom(...HEADER_DIALECTS), scene, (dialect, { policies, decision, nowMs }) => {
        for (const [name, value] of compileHeaders(headerFormats(dialect), policies)(decision, () => nowMs)) {
          expect(exposedHeaders(dialect)).toContain(name)
          expect(value).toMatch(/^[\x20-\x7e]+$/)
        }
      }),
    )
  })
})

interface Told {
  readonly name: string
  readonly remaining: number
  readonly seconds: number | undefined
  readonly cost: number | undefined
}

/** Compares the headers of a check with the check: remaining units, seconds, and a pace that the policy allows. */
function tellsTheTruth(told: Told, { limit, windowMs, ...one }: PolicyCheck, dialect: HeaderDialect): void {
  expect(told.cost).toBe(dialect === "next" ? bounded(one.cost) : undefined)
  expect(told.remaining).toBe(one.allowed ? bounded(one.remaining) : 0)
  const waitMs = one.allowed ? one.nextUnitAfterMs : one.retryAfterMs
  if (waitMs === Number.POSITIVE_INFINITY) {
    expect(told.seconds).toBeUndefined()
    return
  }
  const seconds = told.seconds as number
  expect(seconds).toBeGreaterThanOrEqual(1)
  expect(seconds * 1000).toBeGreaterThanOrEqual(waitMs)
  if (told.remaining === 0) {
    expect((seconds - 1) * 1000).toBeLessThan(waitMs)
    return
  }
  // Compute in integers. With floating point, a quotient of such large numbers may be off by a second.
  const share = BigInt(one.remaining as number) * BigInt(Math.ceil(windowMs / 1000))
  const isExact = share <= Number.MAX_SAFE_INTEGER
  if (isExact) expect(BigInt(seconds) * BigInt(limit)).toBeGreaterThanOrEqual(share)
  const isTooLong =
    (seconds - 1) * 1000 >= waitMs && BigInt(seconds - 1) * BigInt(limit) >= share + (isExact ? 0n : 1n)
  expect(isTooLong).toBe(false)
}

function bounded(value = 0): number {
  return Math.min(value, MAX_INTEGER)
}

function readPolicies(list: string): { name: string; limit: number; windowS: number }[] {
  return parseList(list).map((member) => {
    const [name, parameters] = member as Item
    const windowS = integer(parameters.get("w"))
    if (windowS === 0) throw new Error("w is 0")
    return { name: text(name), limit: integer(parameters.get("q")), windowS }
  })
}

function readLimits(list: string, remainingKey: string, secondsKey: string): Told[] {
  return parseList(list).map((member) => {
    const [name, parameters] = member as Item
    const [seconds, cost] = [parameters.get(secondsKey), parameters.get("c")]
    return {
      name: text(name),
      remaining: integer(parameters.get(remainingKey)),
      seconds: seconds === undefined ? undefined : integer(seconds),
      cost: cost === undefined ? undefined : integer(cost),
    }
  })
}

function text(item: BareItem): string {
  if (typeof item !== "string") throw new Error(`${String(item)} is no String`)
  return item
}

function integer(item: BareItem | undefined): number {
  if (typeof item !== "number" || !Number.isInteger(item) || item < 0)
    throw new Error(`${String(item)} is no count`)
  return item
}

function parseItemOf(field: string | undefined): BareItem {
  return parseItem(field as string)[0]
}

/** Returns the written fields by name, and expects each name once. Without `nowMs` the clock must not be read. */
function fields(
  dialect: HeaderDialect,
  policies: readonly HeaderPolicy[],
  decision: Decision,
  nowMs: () => number = dialect === "legacy" ? () => 0 : neverAsked,
): Record<string, string> {
  const lines: readonly HeaderLine[] = compileHeaders(headerFormats(dialect), policies)(decision, nowMs)
  expect(new Set(lines.map(([name]) => name)).size).toBe(lines.length)
  return Object.fromEntries(lines)
}

function neverAsked(): number {
  throw new Error("the clock was asked")
}

function policy(name: string, limit: number, windowMs: number): HeaderPolicy {
  return { name, limit, windowMs, unit: "requests", shadow: false }
}

function unitPolicy(name: string, unit: string): HeaderPolicy {
  return { ...policy(name, 5, 1000), unit }
}

function shadowPolicy(name: string): HeaderPolicy {
  return { ...policy(name, 1, 1000), shadow: true }
}

function refusing(retryAfterMs: number): Pick<PolicyCheck, "allowed" | "retryAfterMs" | "remaining"> {
  return { allowed: false, retryAfterMs, remaining: 0 }
}

function check(members: Partial<PolicyCheck>): PolicyCheck {
  return {
    policy: "p",
    unit: "requests",
    algorithm: "sliding-window",
    limit: 100,
    windowMs: MINUTE,
    remaining: 1,
    cost: 1,
    allowed: true,
    retryAfterMs: 0,
    nextUnitAfterMs: 1,
    resetAfterMs: 55_555,
    delayMs: 0,
    overLimit: false,
    shadow: false,
    ageMs: 0,
    ...members,
  }
}

function admitted(checks: readonly PolicyCheck[], binding: string = checks[0]?.policy ?? ""): Decision {
  // Members that the headers must not read have unusual values on purpose.
  return {
    allowed: true,
    policy: binding,
    limit: -1,
    remaining: -1,
    cost: -1,
    retryAfterMs: 0,
    resetAfterMs: -1,
    delayMs: 0,
    overLimit: false,
    degraded: false,
    shadowed: [],
    checks,
  }
}

function refused(checks: readonly PolicyCheck[], binding?: string): Decision {
  return { ...admitted(checks, binding), allowed: false, retryAfterMs: -1 }
}
