import { readdirSync, readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { Ajv } from "ajv"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { rulesSchemaText } from "../packages/core/rules.schema.ts"
import { formatRuleDocument } from "../packages/core/src/rules/documents/format-document.ts"
import { readRuleDocument } from "../packages/core/src/rules/documents/rule-document.ts"
import { goodRules } from "../packages/core/src/rules/testing/good-rules.ts"
import { readRuleFile } from "../packages/rules/src/sources/rule-file.ts"
import { valuesIn } from "../packages/rules/src/text/document-text.ts"

const SCHEMA = new URL("../packages/rules/rules.schema.json", import.meta.url)
const SHELF = new URL("fixtures/rules/", import.meta.url)

const schema = JSON.parse(readFileSync(SCHEMA, "utf8"))
const ajv = new Ajv({ allErrors: true, allowUnionTypes: true, strictRequired: false })
// This keyword is only for editors.
ajv.addKeyword("doNotSuggest")
const validate = ajv.compile(schema)

/**
 * Files whose mistakes a schema cannot detect, with the reason. The parser refuses everything that the schema
 * refuses, so there are no deviations in the other direction.
 */
const DEVIATIONS: Readonly<Record<string, string>> = {
  "duplicate-names.yaml": "two rules of one name, given or made",
  "rejection-without-body.yaml": "a media type without a body",
  "service-twice.yaml": "two documents of one service",
  "service-id-twice.json": "a member in two spellings",
  "requests-twice.json": "a member in two spellings",
  "rules-and-rule.yaml": "a member in two spellings",
  "buckets-too-many.yaml": "more sub-windows than milliseconds",
  "burst-beyond-2-53.yaml": "burst times window cannot be counted exactly",
  "ceiling-not-above.yaml": "a ceiling that is not above the limit",
  "cost-above-capacity.yaml": "a cost above what is admitted",
  "log-too-long.yaml": "a log of too many entries",
  "penalty-in-vain.yaml": "a penalty of the whole service, and refusals where requests are held",
  "match-values-wrong.yaml": "values that a field of the match never has",
  "member-not-used.yaml": "a member that the algorithm does not use",
  "time-zone-wrong.yaml": "a time zone that does not exist",
  "soft-below-one-unit.yaml": "a percentage of less than one unit",
}

const files = readdirSync(SHELF).filter((name) => /\.(yaml|json)$/.test(name))

/** Returns the documents of a file for the schema, or undefined if the file is not valid YAML or JSON. */
function documentsOf(name: string): readonly unknown[] | undefined {
  try {
    const text = readFileSync(new URL(name, SHELF), "utf8")
    const documents = Array.from(
      valuesIn(text, name.endsWith(".json") ? "json" : "yaml"),
      ({ value }) => value,
    )
    return documents.length === 0 ? undefined : documents
  } catch {
    return undefined
  }
}

describe("the JSON Schema of rules", () => {
  it("is up to date with the parser's schema; `pnpm schema` regenerates it", () => {
    expect(readFileSync(SCHEMA, "utf8")).toBe(rulesSchemaText())
  })

  it("describes every member, and marks old spellings as deprecated", () => {
    const members = Object.values(schema.definitions as Record<string, { properties: object }>).flatMap(
      ({ properties }) =>
        Object.entries(properties as Record<string, { description?: string; deprecated?: boolean }>),
    )
    expect(members.length).toBeGreaterThan(28)
    expect(members.filter(([, { description = "" }]) => !/^.{10,}\.$/.test(description))).toEqual([])
    const old = members.filter(([, { deprecated }]) => deprecated === true).map(([name]) => name)
    expect(old.sort()).toEqual([
      ...["Service_id", "errorMessage", "rejection_message", "request_per_unit", "requestsPerUnit", "rule"],
      "serviceId",
    ])
  })

  it.each(files)("accepts or rejects %s like the parser, except for known differences", async (name) => {
    const documents = documentsOf(name)
    // Editors report invalid YAML by themselves.
    if (documents === undefined) return
    const text = readFileSync(new URL(name, SHELF), "utf8")
    const { problems } = await readRuleFile(text, name.endsWith(".json") ? "json" : "yaml")
    const isValid = validate(documents.length === 1 ? documents[0] : documents)
    if (DEVIATIONS[name] !== undefined)
      expect({ isValid, isGood: problems.length === 0 }).toEqual({ isValid: true, isGood: false })
    else expect({ isValid, errors: validate.errors }).toMatchObject({ isValid: problems.length === 0 })
  })

  it("reports an error at each member that the parser would reject", () => {
    const errors = (rule: object): string[] => {
      validate({ rules: [{ limit: 5, window: "1 minute", ...rule }] })
      return (validate.errors ?? []).map(({ instancePath }) => instancePath)
    }
    expect(errors({})).toEqual([])
    for (const window of ["90 Seconds", "1.5 minutes", " 15m", "MINUTE", 90000])
      expect(errors({ window })).toEqual([])
    for (const window of ["5 minuts", "1 month", "", 0, 1.5])
      expect(errors({ window })).toContain("/rules/0/window")
    for (const field of ["ip", "user_id", "header:x-api-key", "body:user.id", ["ip", "param:id"]]) {
      expect(errors({ field })).toEqual([])
    }
    for (const field of ["user id", "head:x", "header:", "body:a..b", [], ["ip", "ip"]]) {
      expect(errors({ field }).some((path) => path.startsWith("/rules/0/field"))).toBe(true)
    }
    expect(errors({ rate: { requests_per_unit: 5, unit: "minute" } })).toContain("/rules/0")
    expect(errors({ match: { path: "users" } })).toContain("/rules/0/match/path")
    for (const throttle of ["hard", { kind: "hard" }, { kind: "soft", percent: 5 }, { kind: "elastic" }]) {
      expect(errors({ throttle })).toEqual([])
    }
    expect(errors({ throttle: { kind: "queue", max_waiting: 5, max_wait_ms: 50 } })).toEqual([])
    for (const throttle of [
      "soft",
      { kind: "soft" },
      { kind: "soft", percent: 0 },
      { kind: "queue", percent: 5 },
    ]) {
      expect(errors({ throttle })).toContain("/rules/0/throttle")
    }
    const inFlight = { limit: undefined, window: undefined, concurrent: 5 }
    for (const hold of ["30 seconds", 2_000, undefined]) expect(errors({ ...inFlight, hold })).toEqual([])
    expect(errors({ ...inFlight, hold: "soon" })).toContain("/rules/0/hold")
    for (const rule of [{ concurrent: 5 }, { hold: "1m" }, { ...inFlight, concurrent: 1_000_001 }])
      expect(errors(rule)).not.toEqual([])
    for (const buckets of [1, 361, 2.5]) expect(errors({ buckets })).toContain("/rules/0/buckets")
  })

  it("accepts every valid rule in its stored form", () => {
    fc.assert(
      fc.property(goodRules, (rules) => {
        const isValid = validate({ rules: formatRuleDocument("a", rules).rules })
        expect({ isValid, errors: validate.errors }).toEqual({ isValid: true, errors: null })
      }),
    )
  })

  it("accepts a rule with any members of a calendar exactly if the parser does", () => {
    let accepted = 0
    const someOf = (absent: number, ...values: readonly unknown[]) =>
      fc.oneof(
        { weight: absent, arbitrary: fc.constant(undefined) },
        { weight: 1, arbitrary: fc.constantFrom(...values) },
      )
    const anchors = [0, 1, 7, 8, 31, 32, 1.5, "1", "07", "8", "31", "00", "04-01", "02-29", "02-30", "4-1"]
    const dates = ["2026-01-31", "2026-13-01", "2026-01-31T10:00:00Z", "31 January", true, [1]]
    const members = fc.record({
      limit: someOf(19, undefined, 0, "5"),
      per: someOf(1, "day", "week", "month", "year", "month", "hour", 1),
      time_zone: someOf(1, "UTC", "Europe/Berlin", 1),
      anchor: someOf(1, ...anchors, ...dates),
      window: someOf(19, "1 day"),
      rate: someOf(19, { requests_per_unit: 5, unit: "day" }),
      concurrent: someOf(19, 5),
      hold: someOf(19, "5 seconds"),
      algorithm: someOf(19, "fixed-window", "sliding-window"),
      align: someOf(19, "epoch"),
      buckets: someOf(19, 6),
      burst: someOf(19, 9),
      refill: someOf(19, "periodic"),
      count_rejected: someOf(19, true),
    })
    fc.assert(
      fc.property(members, fc.constantFrom({}, { limit: 5 }, { limit: 5 }), (some, limit) => {
        const given = { field: "ip", ...limit, ...JSON.parse(JSON.stringify(some)) }
        // The schema does not check which members another algorithm uses.
        fc.pre(
          given.per !== undefined ||
            (given.align ?? given.buckets ?? given.burst ?? given.refill) === undefined,
        )
        const { problems } = readRuleDocument({ rules: [given] })
        const isValid = validate({ rules: [given] })
        if (isValid) accepted += 1
        expect({ given, isValid, problems }).toMatchObject({ isValid: problems.length === 0 })
      }),
      { numRuns: 1_000 },
    )
    expect(accepted).toBeGreaterThan(40)
  })

  it("is exported by the package", () => {
    expect(fileURLToPath(import.meta.resolve("@sluice/rules/rules.schema.json"))).toBe(fileURLToPath(SCHEMA))
  })
})
