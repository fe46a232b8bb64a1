import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { DURATION_ACCEPTED, formatDuration, parseDuration } from "./duration.ts"

const MOST = Number.MAX_SAFE_INTEGER

describe("a duration", () => {
  it.each([
    [1, 1],
    [90_000, 90_000],
    [MOST, MOST],
    ["1ms", 1],
    ["250 milliseconds", 250],
    ["100 msec", 100],
    ["100 msecs", 100],
    ["1 second", 1_000],
    ["90 seconds", 90_000],
    ["5 sec", 5_000],
    ["5 secs", 5_000],
    ["30s", 30_000],
    ["1 minute", 60_000],
    ["15m", 900_000],
    ["15 min", 900_000],
    ["15 mins", 900_000],
    ["1h", 3_600_000],
    ["2 hr", 7_200_000],
    ["2 hrs", 7_200_000],
    ["2 hours", 7_200_000],
    ["1 day", 86_400_000],
    ["3d", 259_200_000],
    ["2 weeks", 1_209_600_000],
    ["1w", 604_800_000],
    ["minute", 60_000],
    ["M", 60_000],
    ["  1\tMINUTE ", 60_000],
    ["1 Days", 86_400_000],
    ["007 s", 7_000],
    ["1.5 minutes", 90_000],
    ["0.001 s", 1],
    ["1.1 weeks", 665_280_000],
    ["0.1 day", 8_640_000],
    ["1.000005 weeks", 604_803_024],
    ["999999999999999ms", 999_999_999_999_999],
  ])("written as %j is %i ms", (value, ms) => {
    expect(parseDuration(value)).toBe(ms)
  })

  it.each([
    0,
    -1,
    1.5,
    Number.NaN,
    Number.POSITIVE_INFINITY,
    MOST + 1,
    "",
    " ",
    "5",
    "60000",
    "-1 minute",
    "+1 minute",
    "0 seconds",
    "0.0 s",
    "1e3 ms",
    "1,5 minutes",
    "1. minute",
    ".5 minute",
    "1 minute 30 seconds",
    "5 minuts",
    "1 month",
    "1 year",
    "1 mss",
    "1 ss",
    "1 ds",
    "s s",
    "1.5 ms",
    "0.0005 s",
    "0.333333 s",
    "1.0000001 minutes",
    "100000000000000.000001 ms",
    "1000000000000000 ms",
    "20000000 weeks",
    "1 constructor",
    "1 __proto__",
    "1 toString",
    "1 ＭＩＮＵＴＥ",
    "１ minute",
    null,
    undefined,
    true,
    1_000n,
    [],
    ["1m"],
    {},
    new Date(),
    Symbol("1m"),
  ])("cannot be parsed from %s", (value) => {
    expect(parseDuration(value)).toBeUndefined()
  })

  it("with a whole number of units is exact, and is rejected at 2^53 ms and above", () => {
    const units = fc.constantFrom(
      ["ms", 1n],
      ["s", 1_000n],
      ["m", 60_000n],
      ["h", 3_600_000n],
      ["w", 604_800_000n],
    )
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 999_999_999_999_999 }), units, (count, [unit, ms]) => {
        const exact = BigInt(count) * (ms as bigint)
        expect(parseDuration(`${count} ${unit}`)).toBe(exact < 2n ** 53n ? Number(exact) : undefined)
      }),
      { seed: 4_101, numRuns: 2_000 },
    )
  })

  it("with decimals is exact, and is rejected if it is not a whole number of milliseconds", () => {
    const units = fc.constantFrom(["s", 1_000n], ["min", 60_000n], ["d", 86_400_000n])
    fc.assert(
      fc.property(fc.nat(100_000), fc.stringMatching(/^\d{1,6}$/), units, (whole, decimals, [unit, ms]) => {
        const scale = 10n ** BigInt(decimals.length)
        const scaled = (BigInt(whole) * scale + BigInt(decimals)) * (ms as bigint)
        const isWhole = scaled > 0n && scaled % scale === 0n
        expect(parseDuration(`${whole}.${decimals}${unit}`)).toBe(
          isWhole ? Number(scaled / scale) : undefined,
        )
      }),
      { seed: 4_102, numRuns: 2_000 },
    )
  })

  it("is rejected quickly even if the text is very long", () => {
    expect(parseDuration(`${"9".repeat(1_000_000)}m`)).toBeUndefined()
    expect(parseDuration(`1${" ".repeat(1_000_000)}`)).toBeUndefined()
    expect(parseDuration(`${" ".repeat(1_000_000)}!`)).toBeUndefined()
  })

  it("can be parsed from each example in the error message", () => {
    const examples = DURATION_ACCEPTED.match(/"[^"]+"/g) ?? []
    expect(examples.length).toBeGreaterThan(4)
    for (const example of examples) expect(parseDuration(JSON.parse(example))).toBeGreaterThan(0)
  })
})

describe("formatDuration", () => {
  it.each([
    [1, "1ms"],
    [1_500, "1500ms"],
    [1_000, "1s"],
    [90_000, "90s"],
    [60_000, "1m"],
    [5_400_000, "90m"],
    [3_600_000, "1h"],
    [86_400_000, "1d"],
    [604_800_000, "7d"],
    [90_061_001, "90061001ms"],
  ])("for %i ms returns %s", (ms, text) => {
    expect(formatDuration(ms)).toBe(text)
  })

  it("returns a string that is parsed as the same duration", () => {
    const durations = fc.tuple(
      fc.integer({ min: 1, max: 100_000 }),
      fc.constantFrom(1, 1_000, 60_000, 3_600_000, 86_400_000),
    )
    fc.assert(
      fc.property(durations, ([count, ms]) => {
        expect(parseDuration(formatDuration(count * ms))).toBe(count * ms)
      }),
      { seed: 4_103, numRuns: 1_000 },
    )
  })
})
