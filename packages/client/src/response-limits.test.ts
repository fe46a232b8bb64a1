import { describe, expect, it, vi } from "vitest"
import type { Reading } from "./reading.ts"
import { readLimits } from "./response-limits.ts"

const NOW = Date.parse("2026-11-27T02:00:00Z")
const DATE = "Fri, 27 Nov 2026 02:00:00 GMT"
const EPOCH_S = NOW / 1000

type Headers = Readonly<Record<string, string>>
const read = (headers: Headers, status = 200) =>
  readLimits(new Response(null, { status, headers: { date: DATE, ...headers } }))
const of = (remaining: number, forMs: number, quota?: number): Reading => ({ remaining, forMs, quota })

/** Recorded headers, and what they say. */
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

describe("headers that say nothing", () => {
  it.each([
    {},
    { ratelimit: '"cached";r=0;t=3000', age: "3600" },
    { ratelimit: "default;r=50" },
    { ratelimit: '"d";r=-1' },
    { ratelimit: '"d";r=1.5;t=1' },
    { ratelimit: '"d"' },
    { ratelimit: '"d";r="5";t=1' },
    { ratelimit: '"d";r=1234567890123456;t=1' },
    { ratelimit: "not a field(" },
    { ratelimit: "limit=1, remaining=-1, reset=1" },
    { ratelimit: "limit=1, remaining=a, reset=1" },
    { "ratelimit-remaining": "1" },
    { "ratelimit-remaining": "1e3", "ratelimit-reset": "1" },
    { "x-ratelimit-remaining": "", "x-ratelimit-reset": "" },
    { "x-ratelimit-remaining": "9", "x-ratelimit-reset": "tomorrow" },
    { "x-ratelimit-remaining": "NaN", "x-ratelimit-reset": "Infinity" },
    { "x-ratelimit-remaining-tokens": "1", "x-ratelimit-reset-tokens": "soon" },
  ] as Headers[])("%o", (headers) => {
    expect(read(headers)).toMatchObject({ dialect: undefined, readings: [] })
  })
})

it("a time of more than a day counts as a day", () => {
  expect(read({ ratelimit: '"d";r=5;t=999999999999999' }).readings).toEqual([of(5, 86_400_000)])
})

describe("a refusal", () => {
  it.each([
    [429, { "retry-after": "7" }, 7_000],
    [429, { "retry-after": "0" }, 0],
    [429, { "retry-after": "30, 20" }, 30_000],
    [429, { "retry-after": "Fri, 27 Nov 2026 02:00:09 GMT" }, 9_000],
    [429, { "retry-after": "Fri, 27 Nov 2026 01:00:00 GMT" }, 0],
    [429, { "retry-after": "99999999" }, 86_400_000],
    [429, { "retry-after": "1", "retry-after-ms": "350" }, 350],
    [429, { "retry-after": "soon" }, undefined],
    [429, { "retry-after": "-3" }, undefined],
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
  ] as const)("%d with %o asks to wait %s ms", (status, headers, waitMs) => {
    expect(read(headers as Headers, status)).toMatchObject({ isRefused: true, waitMs })
  })

  it.each([
    [200, { "retry-after": "7" }],
    [503, {}],
    [403, { "x-ratelimit-remaining": "0", "x-ratelimit-reset": "5" }],
    [403, { "x-github-request-id": "1", "x-ratelimit-remaining": "9", "x-ratelimit-reset": "5" }],
    [500, { "retry-after": "7" }],
  ] as const)("%d with %o is not a refusal", (status, headers) => {
    expect(read(headers as Headers, status)).toMatchObject({ isRefused: false, waitMs: undefined })
  })

  it("an instant is compared with the server's clock, and without one with this clock", () => {
    vi.useFakeTimers({ toFake: ["Date"], now: NOW + 3_600_000 })
    const until = { "retry-after": "Fri, 27 Nov 2026 02:00:09 GMT" }
    expect(read(until, 429).waitMs).toBe(9_000)
    const late = { "retry-after": "Fri, 27 Nov 2026 03:00:04 GMT" }
    expect(readLimits(new Response(null, { status: 429, headers: late })).waitMs).toBe(4_000)
    vi.useRealTimers()
  })

  it.each(["true", "false", undefined])("Stripe-Should-Retry: %s", (text) => {
    const headers: Headers = text === undefined ? {} : { "stripe-should-retry": text }
    expect(read(headers, 429).shouldRetry).toBe(text ?? null)
  })
})
