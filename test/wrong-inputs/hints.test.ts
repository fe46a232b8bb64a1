import { createLimiter, memoryStore } from "@sluice/core"
import { createGuard } from "@sluice/core/adapters"
import { fileRules, readRuleFile } from "@sluice/rules"
import { describe, expect, it } from "vitest"

/** Each row contains a plausible mistake, and the part of the message with the remedy. */
const OPTIONS: readonly (readonly [given: object, remedy: string])[] = [
  [{ limit: "100" }, 'limit: "100" is not a limit; it is a string, use the number 100'],
  [{ limit: "1_000" }, "use the number 1000"],
  [{ limit: Number.POSITIVE_INFINITY }, "leave the rule out to have no limit"],
  [{ limit: "5/minute" }, 'use "limit" 5 and "window" "1 minute"'],
  [{ limit: "5 requests per 10 seconds" }, 'use "limit" 5 and "window" "10 seconds"'],
  [{ window: "60" }, 'use "60 seconds", or "60 ms"'],
  [{ window: "per minute" }, 'use "1 minute"'],
  [{ window: "1 month" }, 'use "per": "month" instead for calendar months, or "30 days"'],
  [{ window: "yearly" }, 'use "per": "year" instead for calendar years, or "365 days"'],
  [{ limit: "5/month" }, 'use "limit" 5 and "per" "month"'],
  [{ penalty: { refusals: 5, for: "1 month" } }, 'use "30 days"'],
  [{ penalty: { refusals: 5, for: "year" } }, 'use "365 days"'],
  [{ per: "daily" }, 'use "day"'],
  [{ period: "month" }, 'use "window" instead, such as "1 minute", or "per", such as "month"'],
  [{ timezone: "Europe/Berlin" }, 'use "timeZone" instead'],
  [{ timeZone: "berlin" }, 'use "Europe/Berlin"'],
  [{ timeZone: "New York" }, 'use "America/New_York"'],
  [{ timeZone: "Europe/Berln" }, 'did you mean "Europe/Berlin"?'],
  [{ timeZone: "+01:00" }, "use the zone of a city, which includes its summer time"],
  [{ timeZone: "UTC " }, 'did you mean "UTC"?'],
  [{ timeZone: "CET+1" }, "use the zone of a city"],
  [{ timeZone: "PDT" }, "use the zone of a city"],
  [{ timeZone: "the local time" }, 'is not a time zone; accepted: an IANA name such as "Europe/Berlin"'],
  [{ window: "3 months" }, 'use "90 days"'],
  [{ window: "2 years" }, 'use "730 days"'],
  [{ per: "month", anchor: "Monday" }, 'use 1 with "per": "week"'],
  [{ per: "week", anchor: "sun" }, 'use 7 with "per": "week"'],
  [{ per: "week", anchor: 0 }, "use 1 for the first day, or 7 for Sunday"],
  [{ per: "week", anchor: 8 }, "8 is not a day of a week; accepted: a whole number from 1 (Monday) to 7"],
  [{ per: "month", anchor: "last" }, "use 31 for the last day of each month"],
  [{ per: "month", anchor: "15th" }, "use 15"],
  [{ per: "month", anchor: 32 }, "32 is not an anchor; accepted: a day such as 31"],
  [{ per: "month", anchor: "01-31" }, "is not a day of a month; accepted: a whole number from 1 to 31"],
  [{ anchor: 31 }, 'or per instead of window, such as per: "month"'],
  [{ per: "minute" }, 'for other times, use "window", such as "1 minute"'],
  [{ interval: "minute" }, 'use "window" instead'],
  [{ requests: 5 }, 'use "limit" instead'],
  [{ ttl: 60 }, 'use "window" instead'],
  [{ key: "ip" }, 'use "field" instead'],
  [{ rate: 5 }, 'use "limit" and "window" instead'],
  [{ queue: true }, 'use "throttle" instead'],
  [{ dryRun: true }, 'use "shadow" instead'],
  [{ failOpen: true }, 'use "onStoreFailure" instead'],
  [{ client: {} }, 'use "store": redisStore({ client }) instead'],
  [{ limiters: [] }, 'use "rules" instead'],
  [{ path: "/login" }, 'use "match": { path } instead'],
  [{ methods: ["POST"] }, 'use "match": { methods } instead'],
  [{ match: "/login" }, 'use { path: "/login" }'],
  [{ match: { methods: "POST" } }, 'use ["POST"]'],
  [{ match: { methods: "GET,POST" } }, 'use ["GET", "POST"]'],
  [{ match: { path: ["/a", "/b"] } }, "give each path a separate rule"],
  [{ match: { fields: { plan: "free" } } }, 'use ["free"]'],
  [{ allow: "192.0.2.1" }, 'use ["192.0.2.1"]'],
  [{ field: "service", allow: [7] }, 'use "7"'],
  [{ notify: 80 }, "use [80]"],
  [{ shadow: "true" }, "it is a string, use true"],
  [{ shadow: "off" }, "it is a string, use false"],
  [{ algorithm: "token_bucket" }, 'did you mean "token-bucket"?'],
  [{ algorithm: "sliding" }, '"sliding-window", "sliding-window-strict"'],
  [{ onStoreFailure: "fail-open" }, 'use "allow"'],
  [{ onStoreFailure: "closed" }, 'use "deny"'],
  [{ storeTimeoutMs: "50ms" }, "use the number 50"],
  [{ storeTimeoutMs: "50" }, "use the number 50"],
  [{ store: memoryStore }, "a function is not a store; call it, and pass what it returns"],
  [{ trustedProxies: "1" }, "use the number 1"],
  [{ trustedProxies: "10.0.0.0/8, 192.0.2.1" }, 'use ["10.0.0.0/8", "192.0.2.1"]'],
  [
    { rules: [{ field: "ip", limit: 5, window: "1m", cost: () => 2 }] },
    'a function is "cost" of the limiter',
  ],
  [{ rules: fileRules }, "call it, and pass what it returns"],
  [{ rules: "rules.yaml" }, 'fileRules("rules.yaml")'],
  [
    { rules: [{ field: "ip", rate: { requests_per_unit: 5, unit: "minute" } }] },
    'use "limit" and "window" instead',
  ],
]

const messageOf = async (act: () => unknown): Promise<string> => {
  try {
    await act()
  } catch (error) {
    return (error as Error).message
  }
  return "nothing was wrong"
}

describe("an error about options states the remedy", () => {
  it.each(OPTIONS)("for %o", async (given, remedy) => {
    const window = "per" in given ? undefined : "1 minute"
    const options = "rules" in given ? given : { limit: 5, window, ...given }
    expect(await messageOf(() => createLimiter(options as never))).toContain(remedy)
  })

  it("for a limiter that is passed instead of options", async () => {
    const limiter = createLimiter({ limit: 5, window: "1 minute" })
    const read = () => ({})
    expect(await messageOf(() => createGuard(limiter as never, read))).toContain("accepted: { limiter }")
    expect(await messageOf(() => createLimiter(limiter as never))).toContain("accepted: { limiter }")
  })
})

describe("an error about a call states the remedy", () => {
  const limiter = createLimiter({ limit: 5, window: "1 minute" })
  const client = { remoteAddress: "192.0.2.1" }
  const calls = limiter as unknown as Record<string, (...args: unknown[]) => Promise<unknown>>
  it.each([
    ["block", [client, "2 hours"], 'such as { for: "2 hours" }'],
    ["block", [client, 60_000], "such as { for: 60000 }"],
    ["block", [client, { duration: "1h" }], 'use "for" instead'],
    ["block", [client, { for: "60" }], 'use "60 seconds", or "60 ms"'],
    ["block", [client, { for: "1h", policies: ["ip-1m"] }], 'use "rules" instead'],
    ["block", [{ for: "1h" }, { for: "1h" }], "the request first, and then the options"],
    ["reset", [client, { policies: ["ip-1m"] }], 'use "rules" instead'],
    ["block", [client, "soon"], 'such as { for: "1 hour" }'],
    ["reset", [{ rules: ["ip-1m"] }], "the request first, and then the options"],
    ["reset", [client, "ip-1m"], 'such as { rules: ["ip-1m"] }'],
    ["reset", [client, ["ip-1m"]], 'such as { rules: ["ip-1m"] }'],
    ["reset", [client, 5], 'such as { rules: ["5"] }'],
    ["unblock", [{ rules: ["ip-1m"] }], "the request first, and then the options"],
    ["unblock", [client, "ip-1m"], 'such as { rules: ["ip-1m"] }'],
    ["decide", [], "request: is missing"],
    ["decide", [client, 7], "such as { cost: 7 }"],
    ["decide", [client, "ip-1m"], "such as { cost: 3 }"],
    ["decide", [client, { points: 3 }], 'use "cost" instead'],
    ["decide", [client, { cost: "3" }], "it is a string, use the number 3"],
    ["acquire", [client, { timeoutMs: 3 }], 'use "maxWaitMs" instead'],
    ["acquire", [client, { weight: 3 }], 'use "cost" instead'],
    ["acquire", [client, { highWater: 3 }], 'use "maxWaiting" instead'],
    ["takeUpTo", [client, "3"], "use the number 3"],
  ])("for %s with the arguments %j", async (method, args, remedy) => {
    expect(await messageOf(() => calls[method]?.(...args))).toContain(remedy)
  })
})

describe("a problem in a rules file is reported with the remedy", () => {
  const first = async (text: string): Promise<string> => {
    const [problem] = (await readRuleFile(text, "yaml")).problems
    return `${problem?.line}:${problem?.column} ${problem?.path} ${problem?.message}; ${problem?.accepted}`
  }
  const UNDER = 'a document with the rule under "rules:"'
  it.each([
    [
      "- field: ip\n  limit: 5\n  window: 1m\n",
      `1:3  is a rule, because it has field, limit, window; ${UNDER}`,
    ],
    ["field: ip\nlimit: 5\nwindow: 1m\n", `1:1  is a rule, because it has field, limit, window; ${UNDER}`],
    ["service_id: a\nname: x\nrate: { requests_per_unit: 5, unit: minute }\n", UNDER],
    ["service: a\nrules: []\n", 'use "service_id" instead'],
    ["domain: d\ndescriptors: []\nrules: []\n", "domain"],
    [
      "rules:\n  - limit: 5\n    per: minute\n    window: 1m\n",
      '3:5 rules[0].per "minute" is not a calendar period; "day", "week", "month", "year"; for other times, use "window"',
    ],
    [
      "rules:\n  - limit: 5\n    per: monthly\n",
      '3:5 rules[0].per "monthly" is not a calendar period; use "month"',
    ],
    [
      "rules:\n  - limit: 5\n    window: 1m\n    period: month\n",
      '4:5 rules[0].period "period" is not a member of a rule; use "window" or "per" instead',
    ],
    ["rules:\n  - limit: 5\n    window: 1m\n    unit: month\n", 'use "window" or "per" instead'],
    [
      "rules:\n  - limit: 5\n    window: 1 month\n",
      '3:5 rules[0].window "1 month" is not a window; use "per": "month"',
    ],
    [
      "rules:\n  - rate: { requests_per_unit: 5, unit: month }\n",
      '"month" is not a unit; use "limit" and "per": "month" instead of a rate',
    ],
    ["rules:\n  - rate: 5/month\n", 'use "limit" 5 and "per" "month"'],
    ["rules:\n  - { limit: 5, per: month, tz: UTC }\n", 'use "time_zone" instead'],
    ["rules:\n  - { limit: 5, per: month, timezone: UTC }\n", 'use "time_zone" instead'],
    ["rules:\n  - { limit: 5, per: month, timeZone: UTC }\n", 'did you mean "time_zone"?'],
    ["rules:\n  - { limit: 5, per: month, time_zone: Berlin }\n", 'use "Europe/Berlin"'],
    [
      "rules:\n  - { limit: 5, per: week, anchor: 31 }\n",
      "31 is not a day of a week; a whole number from 1 (Monday) to 7",
    ],
    [
      "rules:\n  - { limit: 5, per: year, anchor: 31 }\n",
      '31 is not a day of a year; a date such as "01-31"',
    ],
    ["rules:\n  - rate: 5/minute\n", 'use "limit" 5 and "window" "1 minute"'],
    [
      "rules:\n  - rate: { limit: 5, unit: minute, requests_per_unit: 5 }\n",
      'use "requests_per_unit" instead',
    ],
    ["rules:\n  - rate: { requests_per_unit: 5, unit: minutes }\n", 'did you mean "minute"?'],
    ["rules:\n  - { limit: '100', window: 1m }\n", "it is a string, use the number 100"],
    ["rules:\n  - { limit: '1,000', window: 1m }\n", "it is a string, use the number 1000"],
    ["rules:\n  - { limit: 010, window: 1m }\n", "it begins with 0, write 10, or 8 if it is octal"],
    ["rules:\n  - { limit: 09, window: 1m }\n", "it begins with 0, write 9"],
    [
      "rules:\n  - field: ip\n    match: path: /login\n",
      '3:12  is not YAML: the value contains ": "; write the value in quotes',
    ],
    ["rules:\n  - field: ip\n     limit: 5\n", "3:1  is not YAML: the line begins with more spaces"],
    ["rules:\n  -field: ip\n   limit: 5\n", '2:11  is not YAML: write a space after the "-"'],
  ])("for the file %j", async (text, remedy) => {
    expect(await first(text)).toContain(remedy)
  })
})
