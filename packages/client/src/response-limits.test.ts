import fc from "fast-check"
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import type { Reading } from "./reading.ts"
import { readLimits } from "./response-limits.ts"

const NOW = Date.parse("2026-11-27T02:00:00Z")
const DATE = "Fri, 27 Nov 2026 02:00:00 GMT"
const EPOCH_S = NOW / 1000
const DAY_S = 86_400

type Headers = Readonly<Record<string, string>>
const read = (headers: Headers, status = 200) =>
  readLimits(new Response(null, { status, headers: { date: DATE, ...headers } }))
const of = (remaining: number, forMs: number, quota?: number): Reading => ({ remaining, forMs, quota })

/** Recorded headers, and the limits that are read from them. */
const RECORDED: Readonly<Record<string, readonly [Headers, string, readonly Reading[]]>> = {
  "draft-11": [
    { ratelimit: '"default";r=50;t=30', "ratelimit-policy": '"default";q=100;w=60' },
    "draft-8",
    [of(50, 30_000, 100)],
  ],
  "draft-11, two policies": [
    {
      ratelimit: '"burst";r=3;t=1, "daily";r=900;t=36000',
      "ratelimit-policy": '"burst";q=10;w=1, "daily";q=1000;w=86400',
    },
    "draft-8",
    [of(3, 1_000, 10), of(900, 36_000_000, 1_000)],
  ],
  "draft-11 with a partition key": [
    { ratelimit: '"default";r=999;pk=:dHJpYWwxMjEzMjM=:;t=5' },
    "draft-8",
    [of(999, 5_000)],
  ],
  "draft-8 without a time takes the window": [
    { ratelimit: '"default";r=50', "ratelimit-policy": '"default";q=100;w=60' },
    "draft-8",
    [of(50, 60_000, 100)],
  ],
  "draft-8 without a time or a window": [{ ratelimit: '"default";r=0' }, "draft-8", [of(0, 1_000)]],
  "the text after draft 11": [
    { ratelimit: '"ip-1m";a=50;w=30;c=1', "ratelimit-policy": '"ip-1m";q=100;w=60' },
    "draft-8",
    [of(50, 30_000, 100)],
  ],
  "a policy in bytes is left out": [
    {
      ratelimit: '"bytes";r=0;t=9, "calls";r=5;t=9',
      "ratelimit-policy": '"bytes";q=9;w=9;qu="content-bytes", "calls";q=9;w=9;qu="requests"',
    },
    "draft-8",
    [of(5, 9_000, 9)],
  ],
  "permits of requests in progress are left out": [
    {
      ratelimit: '"in-flight";r=0, "calls";r=5;t=9',
      "ratelimit-policy": '"in-flight";q=5;qu="concurrent-requests", "calls";q=9;w=9',
    },
    "draft-8",
    [of(5, 9_000, 9)],
  ],
  "draft-7": [
    { ratelimit: "limit=100, remaining=50, reset=30", "ratelimit-policy": "100;w=60" },
    "draft-7",
    [of(50, 30_000, 100)],
  ],
  "draft-6": [
    { "ratelimit-limit": "100, 100;w=60", "ratelimit-remaining": "50", "ratelimit-reset": "30" },
    "triple",
    [of(50, 30_000, 100)],
  ],
  "a new dialect before an old one": [
    {
      ratelimit: '"a";r=1;t=2',
      "x-ratelimit-limit": "9",
      "x-ratelimit-remaining": "9",
      "x-ratelimit-reset": "9",
    },
    "draft-8",
    [of(1, 2_000)],
  ],
  GitHub: [
    {
      "x-github-request-id": "C0DE",
      "x-ratelimit-limit": "5000",
      "x-ratelimit-remaining": "4987",
      "x-ratelimit-reset": String(EPOCH_S + 1_800),
      "x-ratelimit-used": "13",
      "x-ratelimit-resource": "core",
    },
    "x-ratelimit",
    [of(4_987, 1_800_000, 5_000)],
  ],
  "a reset in epoch milliseconds": [
    { "x-ratelimit-limit": "60", "x-ratelimit-remaining": "1", "x-ratelimit-reset": String(NOW + 1_500) },
    "x-ratelimit",
    [of(1, 1_500, 60)],
  ],
  "a reset in seconds from now": [
    { "x-ratelimit-limit": "60", "x-ratelimit-remaining": "1", "x-ratelimit-reset": "45" },
    "x-ratelimit",
    [of(1, 45_000, 60)],
  ],
  "a reset that is over": [
    { "x-ratelimit-limit": "60", "x-ratelimit-remaining": "1", "x-ratelimit-reset": String(EPOCH_S - 5) },
    "x-ratelimit",
    [of(1, 0, 60)],
  ],
  Discord: [
    {
      "x-ratelimit-limit": "5",
      "x-ratelimit-remaining": "0",
      "x-ratelimit-reset": String(EPOCH_S + 2.5),
      "x-ratelimit-reset-after": "1.25",
      "x-ratelimit-bucket": "abcd1234",
    },
    "x-ratelimit",
    [of(0, 1_250, 5)],
  ],
  "GitLab, whose reset is an epoch": [
    {
      "ratelimit-limit": "2000",
      "ratelimit-observed": "1",
      "ratelimit-remaining": "900",
      "ratelimit-reset": String(EPOCH_S + 30),
    },
    "triple",
    [of(900, 30_000, 2_000)],
  ],
  "draft-7 with an epoch": [
    { ratelimit: `limit=10, remaining=0, reset=${EPOCH_S + 30}` },
    "draft-7",
    [of(0, 30_000, 10)],
  ],
  "draft-7 with long fractions": [
    { ratelimit: "limit=10, remaining=0.9999999999999998, reset=29.99999713897705" },
    "draft-7",
    [of(0.9999999999999998, 29_999.99713897705, 10)],
  ],
  "draft-8 with an epoch": [
    { ratelimit: `"default";r=1;t=${EPOCH_S + 30}`, "ratelimit-policy": '"default";q=100;w=60' },
    "draft-8",
    [of(1, 30_000, 100)],
  ],
  "draft-8 with separators in a name": [
    {
      ratelimit: String.raw`"a,b;r=9\";r=8";r=5;t=3 , "c" ;r=7; t=4`,
      "ratelimit-policy": String.raw`"c";q=70;w=60,"a,b;r=9\";r=8";q=50;w=60`,
    },
    "draft-8",
    [of(5, 3_000, 50), of(7, 4_000, 70)],
  ],
  "units that are overdrawn": [
    { "x-ratelimit-limit": "10", "x-ratelimit-remaining": "-1", "x-ratelimit-reset": "30" },
    "x-ratelimit",
    [of(0, 30_000, 10)],
  ],
  "two layers that both send the fields": [
    {
      "x-ratelimit-limit": "10, 1000",
      "x-ratelimit-remaining": "0, 900",
      "x-ratelimit-reset": `30, ${EPOCH_S + 600}`,
    },
    "x-ratelimit",
    [of(0, 30_000, 10), of(900, 600_000, 1_000)],
  ],
  "a time that cannot be read counts as a second": [
    { "x-ratelimit-limit": "10", "x-ratelimit-remaining": "0", "x-ratelimit-reset": "tomorrow" },
    "x-ratelimit",
    [of(0, 1_000, 10)],
  ],
  "Docker Hub, which sends a window and no reset": [
    { "ratelimit-limit": "100;w=21600", "ratelimit-remaining": "76;w=21600" },
    "triple",
    [of(76, 1_000, 100)],
  ],
  Reddit: [
    { "x-ratelimit-remaining": "598.0", "x-ratelimit-used": "2", "x-ratelimit-reset": "423" },
    "x-ratelimit",
    [of(598, 423_000)],
  ],
  "X and Okta": [
    {
      "x-rate-limit-limit": "15",
      "x-rate-limit-remaining": "14",
      "x-rate-limit-reset": String(EPOCH_S + 900),
    },
    "x-rate-limit",
    [of(14, 900_000, 15)],
  ],
  Anthropic: [
    {
      "anthropic-ratelimit-requests-limit": "50",
      "anthropic-ratelimit-requests-remaining": "49",
      "anthropic-ratelimit-requests-reset": "2026-11-27T02:00:01Z",
      "anthropic-ratelimit-input-tokens-limit": "20000",
      "anthropic-ratelimit-input-tokens-remaining": "5000",
      "anthropic-ratelimit-input-tokens-reset": "2026-11-27T02:00:45Z",
    },
    "anthropic",
    [of(49, 1_000, 50), of(12, 45_000, 50)],
  ],
  OpenAI: [
    {
      "x-ratelimit-limit-requests": "60",
      "x-ratelimit-limit-tokens": "150000",
      "x-ratelimit-remaining-requests": "59",
      "x-ratelimit-remaining-tokens": "149984",
      "x-ratelimit-reset-requests": "1s",
      "x-ratelimit-reset-tokens": "6m0s",
    },
    "openai",
    [of(59, 1_000, 60), of(59, 360_000, 60)],
  ],
  "OpenAI with few tokens": [
    {
      "x-ratelimit-limit-requests": "10000",
      "x-ratelimit-limit-tokens": "200000",
      "x-ratelimit-remaining-requests": "9999",
      "x-ratelimit-remaining-tokens": "1000",
      "x-ratelimit-reset-requests": "8.64s",
      "x-ratelimit-reset-tokens": "17ms",
    },
    "openai",
    [of(9_999, 8_640, 10_000), of(50, 17, 10_000)],
  ],
  "OpenAI without known requests": [
    {
      "x-ratelimit-limit-requests": "-1",
      "x-ratelimit-remaining-requests": "-1",
      "x-ratelimit-reset-requests": "0s",
      "x-ratelimit-limit-tokens": "1000",
      "x-ratelimit-remaining-tokens": "250",
      "x-ratelimit-reset-tokens": "2m",
    },
    "openai",
    [of(250, 120_000, 1_000)],
  ],
}

describe("the headers of", () => {
  it.each(Object.entries(RECORDED))("%s", (_name, [headers, dialect, readings]) => {
    expect(read(headers)).toMatchObject({ dialect, isRefused: false, waitMs: undefined })
    expect(read(headers).readings).toEqual(readings)
  })
})

describe("headers without information", () => {
  it.each([
    {},
    { ratelimit: '"cached";r=0;t=3000', age: "3600" },
    { ratelimit: "default;r=50" },
    { ratelimit: '"d"' },
    { ratelimit: '"d";r=-1' },
    { ratelimit: '"d";r=1.5;t=1' },
    { ratelimit: '"d";r=1234567890123456;t=1' },
    { ratelimit: '"d";r="5";t=1' },
    { ratelimit: '"d";r=5;t="30"' },
    { ratelimit: '"d;r=5;t=1' },
    { ratelimit: "not a field(" },
    { ratelimit: "limit=1, remaining=a, reset=1" },
    { "ratelimit-reset": "1" },
    { "x-ratelimit-remaining": "", "x-ratelimit-reset": "" },
    { "x-ratelimit-remaining": "many", "x-ratelimit-reset": "30" },
    { "x-ratelimit-remaining": "NaN", "x-ratelimit-reset": "Infinity" },
    { "x-ratelimit-remaining": "0x10", "x-ratelimit-reset": "30" },
    { "x-ratelimit-remaining": "1.2.3", "x-ratelimit-reset": "30" },
    { "x-ratelimit-remaining-requests": "-1", "x-ratelimit-reset-requests": "0s" },
  ] as Headers[])("%o", (headers) => {
    expect(read(headers)).toMatchObject({ dialect: undefined, readings: [] })
  })
})

it("a time of more than a year and a day counts as a day", () => {
  const forMs = (t: number) => read({ ratelimit: `"d";r=5;t=${t}` }).readings[0]?.forMs
  expect(forMs(367 * DAY_S)).toBe(367 * DAY_S * 1_000)
  expect(forMs(367 * DAY_S + 1)).toBe(86_400_000)
  expect(forMs(999_999_999_999_999)).toBe(86_400_000)
})

it.each([
  ["a week", { ratelimit: '"w";r=5;t=9', "ratelimit-policy": '"w";q=9;w=604800' }, true],
  ["three weeks until a reset", { "x-ratelimit-remaining": "5", "x-ratelimit-reset": "1814400" }, true],
  [
    "a month, on its last day, in the fields of draft 6",
    {
      "ratelimit-limit": "9",
      "ratelimit-remaining": "5",
      "ratelimit-reset": "7200",
      "ratelimit-policy": "100;w=60, 9;w=2678400",
    },
    true,
  ],
  [
    "a minute, beside a month, in the fields of draft 6",
    {
      "ratelimit-limit": "100",
      "ratelimit-remaining": "5",
      "ratelimit-reset": "30",
      "ratelimit-policy": "100;w=60, 9;w=2678400",
    },
    undefined,
  ],
  ["a day of 25 hours", { ratelimit: '"d";r=5;t=90000', "ratelimit-policy": '"d";q=9;w=90000' }, undefined],
  ["a mistaken time", { ratelimit: '"d";r=5;t=999999999' }, undefined],
] as [string, Headers, true | undefined][])(
  "a quota of %s lasts longer than a day: %s",
  (_, headers, isLong) => {
    expect(read(headers).readings[0]?.isLong).toBe(isLong)
  },
)

/** The spellings that servers use for 29.5 s after NOW. */
const SPELLINGS = [
  "29.5",
  " 29.50 ",
  "+29.5",
  "029.5",
  "2.95e1",
  "29.50000000000000000000",
  "29.5;w=60",
  "29.5s",
  "29s500ms",
  "0m29.5s",
  "29.5 seconds",
  `${EPOCH_S + 29.5}`,
  `${(EPOCH_S + 29.5) / 1e9}E9`,
  `${NOW + 29_500}`,
  `${NOW + 29_500}000`,
  `${NOW + 29_500}000000`,
  "2026-11-27T02:00:29.5Z",
  "2026-11-27T02:00:29.500000000Z",
  "2026-11-27T02:00:29.5",
  "2026-11-27t02:00:29.5z",
  "2026-11-26T21:00:29.5-05:00",
  "2026-11-27 03:00:29.5+0100",
]
/** The spellings with whole seconds, such as HTTP dates, for 30 s after NOW. */
const DATES = [
  "Fri, 27 Nov 2026 02:00:30 GMT",
  "Fri, 27 Nov 2026 02:00:30 gmt",
  "Fri, 27 Nov 2026 02:00:30",
  "27 Nov 2026 02:00:30 GMT",
  "Friday, 27-Nov-26 02:00:30 GMT",
  "Fri Nov 27 02:00:30 2026",
  "Fri, 27 Nov 2026 03:00:30 +0100",
  "2026-11-27 02:00:30 UTC",
]
/** The fields that contain a time, each with a function that returns this time in milliseconds. */
const TIMES: Readonly<Record<string, (text: string) => number | undefined>> = {
  "Retry-After": (text) => read({ "retry-after": text }, 429).waitMs,
  "RateLimit-Reset": (text) =>
    read({ "ratelimit-remaining": "1", "ratelimit-reset": text }).readings[0]?.forMs,
  "X-RateLimit-Reset": (text) =>
    read({ "x-ratelimit-remaining": "1", "x-ratelimit-reset": text }).readings[0]?.forMs,
  "X-RateLimit-Reset-After": (text) =>
    read({ "x-ratelimit-remaining": "1", "x-ratelimit-reset-after": text }).readings[0]?.forMs,
  "x-ratelimit-reset-tokens": (text) =>
    read({ "x-ratelimit-remaining-tokens": "1", "x-ratelimit-reset-tokens": text }).readings[0]?.forMs,
}

describe.each(["UTC", "America/New_York", "Europe/Berlin"])("in the time zone %s", (zone) => {
  beforeEach(() => vi.stubEnv("TZ", zone))
  afterEach(() => vi.unstubAllEnvs())

  describe.each(Object.entries(TIMES))("%s is the same time", (_name, timeOf) => {
    it.each(SPELLINGS)("as %s", (text) => expect(timeOf(text)).toBeCloseTo(29_500, 1))
    it.each(DATES)("as %s", (text) => expect(timeOf(text)).toBe(30_000))
  })

  it.each(DATES)("a Date of %s is the server's clock", (date) => {
    const headers = { date, "x-ratelimit-remaining": "0", "x-ratelimit-reset": `${EPOCH_S + 40}` }
    expect(read(headers).readings).toEqual([of(0, 10_000)])
  })
})

it("a number is the same number in all of its spellings, in each field", () => {
  const spelled = fc
    .record({ number: fc.integer({ min: 0, max: 86_000_000 }), zeros: fc.nat(30), form: fc.nat(4) })
    .map(({ number, zeros, form }): [number, string] => {
      const value = number / 1_000
      const point = value.toFixed(3)
      return [
        value,
        [
          String(value),
          point + "0".repeat(zeros),
          "0".repeat(zeros) + point,
          value.toExponential(),
          `+${value}`,
        ][form] as string,
      ]
    })
  fc.assert(
    fc.property(spelled, ([value, text]) => {
      for (const [name, timeOf] of Object.entries(TIMES))
        expect(timeOf(text), name).toBeCloseTo(value * 1_000, 6)
      const both = { ratelimit: `limit=${text}, remaining=${text}, reset=${text}` }
      expect(read(both).readings[0]?.remaining).toBeCloseTo(value, 9)
    }),
  )
})

it("no field of a refusal makes its wait invalid, negative or longer than a day", () => {
  const number = fc
    .tuple(fc.constantFrom("", "-", "+"), fc.bigInt({ min: 0n, max: 10n ** 40n }), fc.nat(2_000_000_000))
    .map(([sign, whole, fraction]) => `${sign}${whole}.${fraction}`)
  const text = fc.oneof(
    number,
    fc.string(),
    fc.double().map(String),
    fc.constantFrom("1e999", "-1e999", "9".repeat(400), `${"9".repeat(400)}s`, ...SPELLINGS, ...DATES),
    fc.date({ noInvalidDate: true }).map((date) => date.toUTCString()),
  )
  const value = fc
    .array(text, { minLength: 1, maxLength: 3 })
    .map((all) => all.join(", ").replace(/[^\x20-\x7e]/g, ""))
  const names = [
    ...["retry-after", "retry-after-ms", "date", "age", "ratelimit", "ratelimit-policy"],
    ...["ratelimit-remaining", "ratelimit-reset", "ratelimit-limit", "x-ratelimit-remaining"],
    ...["x-ratelimit-reset", "x-ratelimit-remaining-tokens", "x-ratelimit-reset-tokens"],
  ]
  const one = fc.tuple(fc.constantFrom(...names), value)
  fc.assert(
    fc.property(fc.array(one, { maxLength: 6 }), (fields) => {
      const { waitMs, readings } = read(Object.fromEntries(fields), 429)
      for (const ms of [waitMs ?? 0, ...readings.map(({ forMs }) => forMs)]) {
        expect(ms).toBeGreaterThanOrEqual(0)
        expect(ms).toBeLessThanOrEqual(367 * DAY_S * 1_000)
      }
      for (const { remaining, quota } of readings) {
        expect(remaining).toBeGreaterThanOrEqual(0)
        expect(quota ?? 1).toBeGreaterThan(0)
      }
    }),
    { numRuns: 1_000 },
  )
})

describe("a refusal", () => {
  it.each([
    [429, { "retry-after": "292.0524270534515" }, 292_052.4270534515],
    [429, { "retry-after": "0.30000000000000004" }, 300.00000000000006],
    [429, { "retry-after": "8.106231689453125e-05" }, 0.08106231689453125],
    [429, { "retry-after": "9999999999999999" }, 86_400_000],
    [429, { "retry-after": "99999999999999999999999" }, 86_400_000],
    [429, { "retry-after": "1000000000" }, 86_400_000],
    [429, { "retry-after": `${EPOCH_S - 1}` }, 0],
    [429, { "retry-after": "Thu, 01 Jan 1970 00:00:00 GMT" }, 0],
    [429, { "retry-after": "Fri, 27 Nov 2026 02:00:09 GMT, Fri, 27 Nov 2026 02:00:20 GMT" }, 20_000],
    [429, { "retry-after": "7, soon" }, 7_000],
    [429, { "retry-after-ms": "1234.5678901234567" }, 1234.5678901234567],
    [429, { "x-ms-retry-after-ms": "350", "retry-after": "1" }, 350],
    [429, { "retry-after": "7" }, 7_000],
    [429, { "retry-after": "0" }, 0],
    [429, { "retry-after": "30, 20" }, 30_000],
    [429, { "retry-after": "Fri, 27 Nov 2026 02:00:09 GMT" }, 9_000],
    [429, { "retry-after": "Fri, 27 Nov 2026 01:00:00 GMT" }, 0],
    [429, { "retry-after": "99999999" }, 86_400_000],
    [429, { "retry-after": String(31 * DAY_S) }, 31 * DAY_S * 1_000],
    [429, { "retry-after": "Fri, 25 Dec 2026 02:00:00 GMT" }, 28 * DAY_S * 1_000],
    [429, { "retry-after": "1", "retry-after-ms": "350" }, 350],
    [429, { "retry-after": "soon" }, undefined],
    [429, { "retry-after": "-3" }, 0],
    [429, {}, undefined],
    [429, { ratelimit: '"d";r=0;t=12' }, 12_000],
    [429, { ratelimit: '"d";r=0;t=12, "e";r=0;t=30, "f";r=1;t=90' }, 30_000],
    [429, { ratelimit: '"d";r=0;t=12', "retry-after": "13" }, 13_000],
    [429, { ratelimit: '"d";r=3;t=12' }, undefined],
    [503, { "retry-after": "2" }, 2_000],
    [429, { "x-github-request-id": "1" }, 60_000],
    [403, { "x-github-request-id": "1", "retry-after": "30" }, 30_000],
    [
      403,
      { "x-github-request-id": "1", "x-ratelimit-remaining": "0", "x-ratelimit-reset": String(EPOCH_S + 5) },
      5_000,
    ],
  ] as const)("with %d and %o causes a wait of %s ms", (status, headers, waitMs) => {
    expect(read(headers as Headers, status)).toMatchObject({ isRefused: true, waitMs })
  })

  it.each([
    [200, { "retry-after": "7" }],
    [503, {}],
    [403, { "x-ratelimit-remaining": "0", "x-ratelimit-reset": "5" }],
    [403, { "x-github-request-id": "1", "x-ratelimit-remaining": "9", "x-ratelimit-reset": "5" }],
    [500, { "retry-after": "7" }],
  ] as const)("is not a response with %d and %o", (status, headers) => {
    expect(read(headers as Headers, status)).toMatchObject({ isRefused: false, waitMs: undefined })
  })

  it("may contain an instant, which is compared with the server's clock, or with this clock if Date is missing", () => {
    vi.useFakeTimers({ toFake: ["Date"], now: NOW + 3_600_000 })
    const until = { "retry-after": "Fri, 27 Nov 2026 02:00:09 GMT" }
    expect(read(until, 429).waitMs).toBe(9_000)
    const late = { "retry-after": "Fri, 27 Nov 2026 03:00:04 GMT" }
    expect(readLimits(new Response(null, { status: 429, headers: late })).waitMs).toBe(4_000)
    vi.useRealTimers()
  })

  it.each(["true", "false", undefined])("may contain Stripe-Should-Retry: %s", (text) => {
    const headers: Headers = text === undefined ? {} : { "stripe-should-retry": text }
    expect(read(headers, 429).shouldRetry).toBe(text ?? null)
  })
})
