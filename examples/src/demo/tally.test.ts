import { describe, expect, it } from "vitest"
import type { Answer } from "./ask.ts"
import { newTally, record, retryAfterSeconds, type Tally } from "./tally.ts"
import { verdict } from "./verdict.ts"

const NOW = Date.UTC(2024, 0, 1, 12, 0, 10)

function answer(status: number, left: number, retryAfter?: string, rule = "ip-1m"): Answer {
  const retry: [string, string][] = retryAfter === undefined ? [] : [["Retry-After", retryAfter]]
  return {
    status,
    statusLine: `HTTP/1.1 ${status} Text`,
    headers: [
      ["RateLimit-Policy", `"other";q=7;w=1, "${rule}";q=3;w=60`],
      ["RateLimit", `"other";r=6;t=1, "${rule}";r=${left};t=9`],
      ...retry,
    ],
    body: "",
  }
}

/** Creates a tally from these responses. All times are within one minute, unless `at` sets others. */
function tallyOf(answers: readonly Answer[], at: Partial<Tally> = {}): Tally {
  const tally = newTally("Express", "203.0.113.1", "ip-1m")
  tally.firstSentMs = NOW
  for (const one of answers) {
    tally.sent++
    record(tally, one, NOW)
  }
  return Object.assign(tally, at)
}

const ADMITTED = [answer(200, 2), answer(200, 1), answer(200, 0)]
const REFUSED = answer(429, 0, "50")

describe("a tally", () => {
  it("reads its own rule from the headers of a response", () => {
    const tally = tallyOf([answer(200, 2)])
    expect(tally).toMatchObject({
      limit: 3,
      windowMs: 60_000,
      remaining: 2,
      owed: 2,
      admitted: 1,
      refused: 0,
    })
  })

  it("stores the first refusal, and the retry time of the latest refusal", () => {
    const tally = tallyOf([...ADMITTED, REFUSED, answer(429, 0, "49")])
    expect(tally).toMatchObject({ admitted: 3, refused: 2, owed: 0, retryAtMs: NOW + 49_000 })
    expect(tally.firstRefusal).toBe(REFUSED)
  })

  it.each([
    ["7", 7],
    ["0", 0],
    ["1.5", 0],
    ["Wed, 21 Oct 2026 07:28:00 GMT", 0],
    [undefined, 0],
  ])("reads a Retry-After of %j as %d seconds", (text, seconds) => {
    expect(retryAfterSeconds(answer(429, 0, text))).toBe(seconds)
  })
})

describe("the verdict", () => {
  const about = (what: string) => [`Express, 203.0.113.1, "ip-1m": ${what}`]
  const row = (name: string, tally: Tally, wrong: readonly string[]) => ({ name, tally, wrong })

  it.each([
    row("accepts requests within the limit", tallyOf(ADMITTED), []),
    row("accepts refusals after the limit", tallyOf([...ADMITTED, REFUSED]), []),
    row(
      "reports an admission beyond the limit",
      tallyOf([...ADMITTED, answer(200, 0), REFUSED]),
      about("4 of 5 requests were admitted, not 3"),
    ),
    row(
      "reports a refusal below the limit",
      tallyOf([answer(200, 2), answer(200, 1), REFUSED]),
      about("2 of 3 requests were admitted, not 3"),
    ),
    row(
      "accepts one more in the next minute",
      tallyOf([...ADMITTED, answer(200, 0), REFUSED], { lastAnsweredMs: NOW + 55_000 }),
      [],
    ),
    row(
      "reports many more in the next minute",
      tallyOf([...ADMITTED, ...ADMITTED, REFUSED], {
        lastAnsweredMs: NOW + 51_000,
        firstSentMs: NOW + 49_000,
      }),
      about("6 of 7 requests were admitted, not 3 to 5"),
    ),
    row("reports a response with another status", tallyOf([...ADMITTED, answer(500, 0)]), [
      ...about("a response was HTTP/1.1 500 Text"),
      ...about("some requests were neither admitted nor refused"),
    ]),
    row(
      "reports a missing retry time once",
      tallyOf([...ADMITTED, answer(429, 0), answer(429, 0)]),
      about("a refusal does not say when to come back"),
    ),
    row(
      "reports responses without the rule",
      tallyOf([answer(200, 0, undefined, "else")]),
      about('a response says nothing of "ip-1m"'),
    ),
    row(
      "accepts an admission after the wait",
      tallyOf(ADMITTED, { waited: { seconds: 2, isAdmitted: true } }),
      [],
    ),
    row(
      "reports a refusal after the wait",
      tallyOf(ADMITTED, { waited: { seconds: 2, isAdmitted: false } }),
      about("it waited the 2 s that it was told and was refused again"),
    ),
  ])("$name", ({ tally, wrong }) => {
    expect(verdict([tally])).toEqual(wrong)
  })
})
