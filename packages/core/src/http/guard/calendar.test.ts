import { describe, expect, it } from "vitest"
import { manualClock } from "../../ground/manual-clock.ts"
import { createLimiter } from "../../limiter/create-limiter.ts"
import type { CalendarRule } from "../../rules/rule.ts"
import { memoryStore } from "../../stores/memory/memory-store.ts"
import { createGuard } from "./create-guard.ts"

const DAY_S = 86_400
const HOUR_S = 3_600

/** Returns the headers and the detail of each of three requests under a limit of two, at the time given. */
async function responsesAt(at: string, calendar: Pick<CalendarRule, "per" | "timeZone" | "anchor">) {
  const clock = manualClock(Date.parse(at))
  const limiter = createLimiter<object>({
    rules: [{ name: "plan", field: "service", limit: 2, ...calendar }],
    store: memoryStore({ clock }),
    clock,
    headers: [
      "draft-11",
      { dialect: "next", prefix: "X-Next" },
      { dialect: "triple", prefix: "X-Triple" },
      "legacy",
    ],
  })
  const guard = createGuard({ limiter })
  const responses: Readonly<Record<string, unknown>>[] = []
  for (let i = 0; i < 3; i++) {
    const { decision, headers, rejection } = await guard.check({}, {})
    responses.push({
      ...Object.fromEntries([...headers, ...(rejection?.headers ?? [])]),
      per: decision.checks[0]?.per,
      detail: rejection && JSON.parse(rejection.body).detail,
    })
  }
  return { responses, clock, guard }
}

describe("the headers of a rule with per", () => {
  it.each([
    ["a month of 28 days", "2026-02-03T06:00:00Z", { per: "month" }, 28 * DAY_S, 25.75 * DAY_S],
    ["a month of 30 days", "2026-04-30T23:59:30Z", { per: "month" }, 30 * DAY_S, 30],
    ["a month of 31 days", "2026-01-01T00:00:00Z", { per: "month" }, 31 * DAY_S, 31 * DAY_S],
    [
      "a month from the 31st to the last day of February",
      "2026-02-27T23:00:00Z",
      { per: "month", anchor: 31 },
      28 * DAY_S,
      HOUR_S,
    ],
    [
      "a month of 31 days without an hour",
      "2026-03-10T23:00:00Z",
      { per: "month", timeZone: "Europe/Berlin" },
      31 * DAY_S - HOUR_S,
      20 * DAY_S + 23 * HOUR_S,
    ],
    [
      "a day of 23 hours",
      "2026-03-28T23:00:00Z",
      { per: "day", timeZone: "Europe/Berlin" },
      23 * HOUR_S,
      23 * HOUR_S,
    ],
    ["a leap year", "2028-02-29T00:00:00Z", { per: "year" }, 366 * DAY_S, 307 * DAY_S],
  ] as const)(
    "contain the length of %s, and the true time until its end",
    async (_, at, calendar, lengthS, restS) => {
      const { responses, clock, guard } = await responsesAt(at, calendar)
      const [first, second, third] = responses
      const policies = {
        "RateLimit-Policy": `"plan";q=2;w=${lengthS}`,
        per: calendar.per,
      }
      const endS = Date.parse(at) / 1_000 + restS
      // Half of the units may be left on the last day, but new ones come when the period ends.
      expect(first).toMatchObject({
        ...policies,
        RateLimit: `"plan";r=1;t=${restS}`,
        "X-Next": `"plan";a=1;w=${restS};c=1`,
        "X-Triple-Reset": String(restS),
        "X-RateLimit-Reset": String(endS),
      })
      expect(second).toMatchObject({ ...policies, RateLimit: `"plan";r=0;t=${restS}` })
      expect(third).toMatchObject({
        ...policies,
        RateLimit: `"plan";r=0;t=${restS}`,
        "Retry-After": String(restS),
        "X-Next-Policy": `"plan";q=2;w=${lengthS}`,
        "X-Next": `"plan";a=0;w=${restS};c=1`,
        "X-Triple-Policy": `2;w=${lengthS}`,
        "X-Triple-Reset": String(restS),
        "X-RateLimit-Reset": String(endS),
      })
      const days = Math.ceil(restS / DAY_S)
      expect(third?.detail).toBe(
        `The quota is used up. Try again in ${restS > 2 * DAY_S ? `${days} days` : `${restS} seconds`}.`,
      )
      clock.set(endS * 1_000 - 1)
      expect((await guard.check({}, {})).decision.allowed).toBe(false)
      clock.set(endS * 1_000)
      expect((await guard.check({}, {})).decision.allowed).toBe(true)
    },
  )

  it.each([
    ["without granted units", 0],
    ["with granted units", 5],
  ])("contain the true time until the end while no unit is used, %s", async (_, units) => {
    const at = Date.parse("2026-02-28T22:00:00Z")
    const clock = manualClock(at)
    const limiter = createLimiter({
      rules: [{ name: "plan", field: "ip", limit: 2, per: "month" }],
      cost: 0,
      store: memoryStore({ clock }),
      clock,
      headers: ["draft-11", "legacy"],
    })
    const client = { remoteAddress: "192.0.2.7" }
    if (units > 0) await limiter.grant(client, units)
    const { headers } = await createGuard({ limiter }).check(client, client)
    expect(Object.fromEntries(headers)).toMatchObject({
      RateLimit: `"plan";r=${2 + units};t=${2 * HOUR_S}`,
      "X-RateLimit-Reset": String(at / 1_000 + 2 * HOUR_S),
    })
  })
})
