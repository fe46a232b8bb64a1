import { describe, expect, test } from "vitest"
import { InvalidRuleError } from "../../ground/errors.ts"
import { parseRule } from "../parsing/parse-rule.ts"
import { formatRuleDocument, formatRuleDocumentInSlices } from "./format-document.ts"
import { parseRuleDocument, readRuleDocument, readRuleDocumentInSlices } from "./rule-document.ts"

const perMinute = { requests_per_unit: 5, unit: "minute" }

const WHOLE_SERVICE = (place: string) => ({
  path: `${place}.field`,
  message: "is missing, so all requests of the service share this limit",
  accepted: '"service" to make this explicit, or "ip" to limit each client address',
})

test("parseRuleDocument converts a stored document into a list of rules", () => {
  expect(
    parseRuleDocument({
      service_id: "checkout",
      version: 7,
      rules: [
        { name: "per-user", field: "user_id", rate: perMinute, request_rejection_message: "come back" },
        { limit: 9, window: 1500, on_missing: "skip", on_store_failure: "deny", shadow: false },
      ],
    }),
  ).toEqual([
    { name: "per-user", field: "user_id", limit: 5, window: "1 minute", rejectionMessage: "come back" },
    {
      field: "service",
      limit: 9,
      window: 1500,
      onMissing: "skip",
      onStoreFailure: "deny",
      shadow: false,
    },
  ])
})

test("a rule without a field is valid, but a note says that it limits the whole service", () => {
  const rules = [{ rate: perMinute }, { field: "ip", rate: perMinute }, { rate: perMinute, cost: 0 }]
  expect(readRuleDocument({ rules }).notes).toEqual([WHOLE_SERVICE("rules[0]")])
  expect(readRuleDocument({ rule: rules[0] }).notes).toEqual([WHOLE_SERVICE("rule")])
})

describe("an older spelling", () => {
  test.each([
    ["service_id", "checkout", "checkout"],
    ["Service_id", 42, "42"],
    ["serviceId", 0, "0"],
  ])("of the service id is accepted: %s: %j", (key, value, service) => {
    expect(readRuleDocument({ [key]: value, rules: [] })).toEqual({
      service,
      rules: [],
      problems: [],
      warnings: [],
      notes: [],
    })
  })

  test.each([
    ["rules", [{ rate: perMinute }]],
    ["rules", { rate: perMinute }],
    ["rule", { rate: perMinute }],
    ["rule", { rate: { requestsPerUnit: 5, unit: "minute" } }],
    ["rule", { rate: { request_per_unit: 5, unit: "minute" } }],
  ])("of the rules is accepted: %s: %j", (key, value) => {
    expect(parseRuleDocument({ [key]: value })).toEqual([{ field: "service", limit: 5, window: "1 minute" }])
  })

  test.each(["errorMessage", "rejection_message"])("of the rejection message is accepted: %s", (name) => {
    expect(parseRuleDocument({ rule: { rate: perMinute, [name]: "no" } })).toEqual([
      { field: "service", limit: 5, window: "1 minute", rejectionMessage: "no" },
    ])
  })

  test.each([
    [{ rate: { ...perMinute, request_per_unit: 5 } }, "rule.rate.request_per_unit"],
    [{ rate: perMinute, request_rejection_message: "no", rejection_message: "no" }, "rule.rejection_message"],
    [{ rate: { request_per_unit: 0, unit: "minute" } }, "rule.rate.request_per_unit"],
  ])("in %j appears in the problem's path: %s", (rule, path) => {
    expect(readRuleDocument({ rule }).problems.map((problem) => problem.path)).toEqual([path])
  })
})

test.each(["second", "minute", "hour", "day", "week"])("the unit %s is converted into a window", (unit) => {
  const [rule] = parseRuleDocument({ rules: [{ rate: { requests_per_unit: 5, unit } }] })
  expect(parseRule(rule, "").rule?.name).toBe(`service-${{ week: "7d" }[unit] ?? `1${unit[0]}`}`)
})

test("readRuleDocument reports an invalid rule with its path, and still returns the valid rules", () => {
  const document = {
    rules: [
      { rate: perMinute },
      { rate: { ...perMinute, unit: "month" } },
      { field: "service", limit: 5, window: "1h" },
    ],
  }
  expect(readRuleDocument(document)).toEqual({
    rules: [
      { limit: 5, window: "1 minute" },
      { field: "service", limit: 5, window: "1h" },
    ],
    problems: [
      {
        path: "rules[1].rate.unit",
        message: '"month" is not a unit; use "limit" and "per": "month" instead of a rate',
        accepted: '"second", "minute", "hour", "day", "week"',
      },
    ],
    warnings: [],
    notes: [WHOLE_SERVICE("rules[0]")],
  })
  expect(() => parseRuleDocument(document)).toThrow(InvalidRuleError)
  expect(() => parseRuleDocument(document)).toThrow(
    'Wrong rules: rules[1].rate.unit: "month" is not a unit; use "limit" and "per": "month" instead of a rate; accepted: "second", "minute", "hour", "day", "week"',
  )
})

test.each([
  [{ rate: { requests_per_unit: 9_007_199_254_740_991, unit: "day" } }, "rules[0].rate.requests_per_unit"],
  [{ rate: { requestsPerUnit: 9_007_199_254_740_991, unit: "day" } }, "rules[0].rate.requestsPerUnit"],
  [{ limit: 9_007_199_254_740_991, window: "1d" }, "rules[0].limit"],
  [{ rate: perMinute, cost: 6 }, "rules[0].cost"],
  [{ rate: perMinute, align: "epoch" }, "rules[0].align"],
])("a conflict between members of %j is reported at %s", (rule, path) => {
  expect(readRuleDocument({ rules: [rule] }).problems.map((problem) => problem.path)).toEqual([path])
})

test.each([null, undefined, "rules", 5, []])(
  "readRuleDocument reports that %s is not a document",
  (value) => {
    const { rules, problems } = readRuleDocument(value)
    expect(rules).toEqual([])
    expect(problems).toHaveLength(1)
    expect(problems[0]).toMatchObject({
      path: "",
      accepted: "an object with service_id, version, metadata, rules",
    })
  },
)

test("parseRuleDocument rejects limit and window if the rule also has a rate", () => {
  const { problems } = readRuleDocument({ rules: { rate: perMinute, limit: 5, window: "1m" } })
  expect(problems.map(({ path }) => path)).toEqual(["rules.limit", "rules.window"])
})

describe("a stored rule with concurrent", () => {
  const problemsOf = (rule: object) =>
    readRuleDocument({ rules: [{ concurrent: 5, ...rule }] }).problems.map(
      ({ path, message, accepted }) => `${path}: ${message}; ${accepted}`,
    )
  const EITHER = "is not used by a rule with concurrent; either concurrent, or limit and window"

  test("is read with its hold, and needs no rate", () => {
    expect(parseRuleDocument({ rule: { field: "ip", concurrent: 5, hold: "30 seconds" } })).toEqual([
      { field: "ip", concurrent: 5, hold: "30 seconds" },
    ])
  })

  test("cannot have a rate, a limit or a window", () => {
    expect(problemsOf({ rate: perMinute })).toEqual([`rules[0].rate: ${JSON.stringify(perMinute)} ${EITHER}`])
    expect(problemsOf({ limit: 5, window: "1m" })).toEqual([
      `rules[0].limit: 5 ${EITHER}`,
      `rules[0].window: "1m" ${EITHER}`,
    ])
  })

  test("is reported with stored names", () => {
    expect(problemsOf({ count_rejected: true, request_rejection_message: "exhausted-daily-limit" })).toEqual([
      `rules[0].count_rejected: true ${EITHER}`,
      'rules[0].request_rejection_message: "exhausted-daily-limit" names a time to retry, but nobody knows when requests in progress end; another message, such as "retry-with-fixed-time"',
    ])
  })

  test("with an invalid number causes one problem, which does not mention functions", () => {
    expect(problemsOf({ concurrent: 0, rate: perMinute })).toEqual([
      "rules[0].concurrent: 0 is not a number of requests; a whole number from 1 to 1000000",
      `rules[0].rate: ${JSON.stringify(perMinute)} ${EITHER}`,
    ])
    expect(problemsOf({ concurrent: 0 })).toHaveLength(1)
  })

  test("is what a rule without any limit may be instead", () => {
    expect(problemsOf({ concurrent: undefined, hold: "1 minute" })).toEqual([
      'rules[0].rate: is missing; a rate such as {"requests_per_unit": 5, "unit": "minute"}, or limit and window, or limit and per, or concurrent',
      'rules[0].hold: "1 minute" is used only by a rule with concurrent; no hold, or concurrent instead of limit and window',
    ])
  })
})

test("parseRuleDocument reports each invalid member of a rate and does not report the limit as missing", () => {
  const paths = (rate: unknown) => readRuleDocument({ rules: [{ rate }] }).problems.map(({ path }) => path)
  expect(paths({ requests_per_unit: 0, unit: "month" })).toEqual([
    "rules[0].rate.requests_per_unit",
    "rules[0].rate.unit",
  ])
  expect(paths({ requestsPerUnit: 0, unit: "day" })).toEqual(["rules[0].rate.requestsPerUnit"])
  expect(paths({})).toEqual(["rules[0].rate.unit", "rules[0].rate.requests_per_unit"])
  expect(paths("5/minute")).toEqual(["rules[0].rate"])
})

describe("readRuleDocumentInSlices", () => {
  test("returns the same result as readRuleDocument", async () => {
    const rules = [
      { name: "a", field: "ip", limit: 5, window: "1 minute" },
      { name: "a", field: "ip", limit: 5, window: "1 minute" },
      { limit: "five" },
      null,
    ]
    const both = { rule: rules, rules }
    for (const value of [{ service_id: 1, rules }, { rule: rules[0] }, { rules: {} }, both, [], null]) {
      expect(await readRuleDocumentInSlices(value)).toEqual(readRuleDocument(value))
    }
  })

  test("yields to the event loop between rules, as formatRuleDocumentInSlices does", async () => {
    const rules = Array.from({ length: 4_000 }, (_, index) => ({
      name: `r${index}`,
      field: "ip",
      rate: perMinute,
      match: { path: `/resource-${index}/:id` },
    }))
    let turns = 0
    let isOver = false
    const count = (): void => {
      turns++
      if (!isOver) setImmediate(count)
    }
    setImmediate(count)
    const read = await readRuleDocumentInSlices({ rules })
    const turnsOfReading = turns
    const { rules: stored } = await formatRuleDocumentInSlices("s", read.rules)
    isOver = true
    expect(read.problems).toEqual([])
    expect(stored).toEqual(formatRuleDocument("s", read.rules).rules)
    // Thousands of rules take many milliseconds on any machine, and a slice takes one millisecond.
    expect(turnsOfReading).toBeGreaterThan(5)
    expect(turns - turnsOfReading).toBeGreaterThan(2)
  })
})
