import { readdirSync, readFileSync } from "node:fs"
import { RuleSourceError } from "@sluice/core"
import { expect, test } from "vitest"
import { examples } from "../../../../test/test-length.ts"
import { fileRules } from "./file.ts"
import { type RuleFile, readRuleFile } from "./rule-file.ts"

/** Returns each problem as `line:column path`, with the text at that place. */
async function places(text: string, format: "yaml" | "json" = "yaml"): Promise<string[]> {
  const { problems } = await readRuleFile(text, format)
  return problems.map(({ line, column, path }) => {
    const there = text.split("\n")[line - 1]?.slice(column - 1) ?? "nothing"
    return `${line}:${column} ${path} | ${/^["\w$-]*/.exec(there)?.[0]}`
  })
}

test("every problem of a YAML file contains the line and column of its member", async () => {
  const text = `# rules of the shop
service_id: checkout
rules:
  - name: per-user
    rate: { requests_per_unit: 0, unit: minit }
  - nam: daily
    limit: 10
    match:
      path: users
      fields: { plan: ["free", ""] }
  - { limit: 5, window: 1 minute, "x y": 1, "a.b": 2, "c[0]": 3 }
extra: 1
`
  expect(await places(text)).toEqual([
    "5:13 rules[0].rate.requests_per_unit | requests_per_unit",
    "5:35 rules[0].rate.unit | unit",
    "6:5 rules[1].nam | nam",
    "6:5 rules[1].window | nam",
    "9:7 rules[1].match.path | path",
    '10:32 rules[1].match.fields.plan[1] | ""',
    '11:35 rules[2]["x y"] | "x',
    '11:45 rules[2]["a.b"] | "a',
    '11:55 rules[2]["c[0]"] | "c',
    "12:1 extra | extra",
  ])
})

test("a problem of a missing member has the place of the object that lacks the member", async () => {
  expect(await places("service_id: a\nrules:\n  - rate:\n      unit: minute\n")).toEqual([
    "3:5 rules[0].rate.requests_per_unit | rate",
  ])
  expect(await places("service_id: a\n")).toEqual(["1:1 rules | service_id"])
})

test("problems of JSON also have places, even on one line or with tabs", async () => {
  const text = '{\n\t"service_id": "a",\n\t"rules": [\n\t\t{ "limit": 1.5, "window": "1m" } ] }'
  expect(await places(text, "json")).toEqual(['4:5 rules[0].limit | "limit"'])
  expect(await places(text)).toEqual(['4:5 rules[0].limit | "limit"'])
  expect(await places('[{"rules":[]},{"service_id":"b","rules":[{"limit":0,"window":1}]}]', "json")).toEqual([
    '1:43 service "b" rules[0].limit | "limit"',
  ])
})

test("a problem behind an alias has the place of the value that the alias refers to", async () => {
  const text = "service_id: a\nrules:\n  - &one { limit: 0, window: 1m, name: x }\n  - *one\n"
  expect(await places(text)).toEqual([
    "3:12 rules[0].limit | limit",
    "3:12 rules[1].limit | limit",
    "3:34 rules[1].name | name",
  ])
})

test("problems in several documents or arrays of documents contain the service or the index", async () => {
  const text = `service_id: a
rules: 5
---
---
- service_id: b
  rules: [7]
- rules: [8]
- { service_id: "", rules: [9] }
- service_id: a
  rules: []
`
  expect(await places(text)).toEqual([
    '2:1 service "a" rules | rules',
    '6:11 service "b" rules[0] | 7',
    "7:11 [2].rules[0] | 8",
    "8:5 [3].service_id | service_id",
    "8:29 [3].rules[0] | 9",
    "9:3 [4] | service_id",
  ])
})

test("a problem with a value that is not a document has a place", async () => {
  expect(await places("5")).toEqual(["1:1  | 5"])
  expect((await places("- rules: []\n- 5\n- null\n- []\n")).map((place) => place.split(" ")[0])).toEqual([
    "2:3",
    "3:3",
    "4:3",
  ])
})

test("a text that cannot be parsed results in one problem, with its place if it is known", async () => {
  const one = async (text: string, format: "yaml" | "json" = "yaml") => {
    const { documents, problems } = await readRuleFile(text, format)
    expect([documents.length, problems.length]).toEqual([0, 1])
    return problems[0]
  }
  expect(await one('{"rules":[],\n "rules":[]}', "json")).toEqual({
    path: "",
    message: 'is not JSON: the member "rules" appears twice',
    line: 2,
    column: 2,
  })
  expect(await one("rules: []\nrules: []\n")).toMatchObject({
    message: expect.stringMatching(/^is not YAML: /),
    line: 2,
  })
  expect(await one("rules: *nobody\n")).toMatchObject({
    message: expect.stringMatching(/^is not YAML: /),
    line: 1,
    column: 1,
  })
  expect(await one(" \n\n")).toEqual({
    path: "",
    message: "is empty",
    accepted: "a document with rules, or `rules: []` for none",
    line: 1,
    column: 1,
  })
  expect((await one("# nothing but this\n"))?.message).toBe("is empty")
})

test("readRuleFile rejects nesting deeper than 32 levels before it can overflow the stack", async () => {
  const nested = (open: string, close: string, levels: number) =>
    `${open.repeat(levels)}${close.repeat(levels)}`
  const first = async (text: string, format: "yaml" | "json") =>
    (await readRuleFile(text, format)).problems[0]?.message ?? ""
  for (const [open, close, format] of [
    ["[", "]", "json"],
    ["[", "]", "yaml"],
    [" [ ", " ] ", "json"],
    ['{ "a": ', "}", "json"],
    ['{ "a": ', "}", "yaml"],
    ["- ", "", "yaml"],
  ] as const) {
    const value = open.includes("a") && format === "json" ? "1" : ""
    for (const levels of [33, 100, 1_000, 20_000]) {
      expect(await first(nested(open, `${close}`, levels), format)).toBe(
        `is not ${format.toUpperCase()}: values are nested deeper than 32 levels`,
      )
    }
    const good = `${open.repeat(32)}${value}${close.repeat(32)}`
    expect(await first(good, format)).not.toContain("nested")
  }
})

test("readRuleFile accepts objects and arrays with thousands of members", async () => {
  const entries = (count: number, more = "") =>
    Array.from({ length: count }, (_, index) => `n${index}${more}`)
  const problemsOf = async (text: string) =>
    (await readRuleFile(text, "yaml")).problems.map(
      ({ line, column, message }) => `${line}:${column} ${message}`,
    )
  const rule = "- { limit: 5, window: 1m, field: u, overrides:"
  expect(await problemsOf(`rules:\n  ${rule} { ${entries(10_000, ": 1").join(", ")} } }\n`)).toEqual([])
  const names = entries(1_001)
  for (const list of [`[${names.join(", ")}]`, names.map((name) => `\n      - ${name}`).join("")]) {
    expect(
      await problemsOf(`rules:\n  - limit: 5\n    window: 1m\n    field: u\n    allow: ${list}\n`),
    ).toEqual([])
  }
})

test("readRuleFile ignores a byte order mark", async () => {
  expect(await readRuleFile('\ufeff{"rules":[]}', "json")).toEqual(await readRuleFile('{"rules":[]}', "json"))
  expect(await readRuleFile("\ufeffrules: 5\n", "yaml")).toEqual(await readRuleFile("rules: 5\n", "yaml"))
})

test("readRuleFile rejects a text that is not a string and an unknown format as invalid options", async () => {
  await expect(readRuleFile(undefined as never, "jsno" as never)).rejects.toMatchObject({
    code: "SLUICE_INVALID_OPTION",
    problems: [
      { path: "text", message: "undefined is not a string", accepted: "the text of a file" },
      { path: "format", message: '"jsno" is not a format', accepted: '"yaml" or "json"' },
    ],
  })
})

test("readRuleFile rejects member names that are not strings, or reports them as unknown", async () => {
  for (const text of ["? { a: b }\n: 1\n", "? - a\n: 1\n", "{ [a]: 1 }", "a: &a b\n*a : 1\n"]) {
    expect((await readRuleFile(text, "yaml")).problems).toEqual([
      {
        path: "",
        message: "is not YAML: the name of a member is not a string",
        line: text.startsWith("a") ? 2 : 1,
        column: text.startsWith("a") ? 1 : 3,
      },
    ])
  }
  expect(await places("rules: []\n1: 6\ntrue: 7\n")).toEqual(["2:1 1 | 1", "3:1 true | true"])
})

test.each([
  ["007: 1", "007 is read as the number 7"],
  ["0x1f: 1", "0x1f is read as the number 31"],
  ["1e3: 1", "1e3 is read as the number 1000"],
  ["12345678901234567890: 1", "12345678901234567890 is read as the number 12345678901234567000"],
  ["null: 1", "null is read as the value null"],
  ["~: 1", "~ is read as the value null"],
  ["TRUE: 1", "TRUE is read as the boolean true"],
])("readRuleFile rejects the name in %s, which would identify another client", async (line, told) => {
  expect((await readRuleFile(`rules: []\n${line}\n`, "yaml")).problems).toEqual([
    { path: "", message: `is not YAML: the name ${told}; write it in quotes`, line: 2, column: 1 },
  ])
  const [name] = line.split(":")
  expect((await readRuleFile(`rules: []\n"${name}": 1\n`, "yaml")).problems).toEqual([
    expect.objectContaining({ message: expect.stringContaining("is not a member of a rule document") }),
  ])
})

test.each([
  ["yaml", ["007", "1e3", "0x1F", "0o17", "+5", ".5", "5.0", "-0", "1_000", "0b1", "2001-01-01", "1:30"]],
  ["yaml", ["12345678901234567", "12345678901234568", "9007199254740992", "1e400", ".inf"]],
  ["json", ["1e3", "5.0", "-0", "12345678901234567", "12345678901234568", "1e400"]],
] as const)("a service id in %s stays the text as written: %s", async (format, ids) => {
  for (const id of ids) {
    for (const name of ["service_id", "Service_id", "serviceId"]) {
      const { documents } = await readRuleFile(`[{"rules": [], "${name}": ${id} }]`, format)
      expect(documents.map(({ service }) => service)).toEqual([id])
    }
  }
})

test.each(["7", "0", "9007199254740991"])(
  "a service id that is the number %s becomes a string",
  async (id) => {
    for (const format of ["yaml", "json"] as const) {
      const { documents } = await readRuleFile(`[{"service_id": ${id}, "rules": []}]`, format)
      expect(documents.map(({ service }) => service)).toEqual([id])
    }
  },
)

test.each(["true", "null", "[7]"])("the service id %s is reported as a problem", async (id) => {
  for (const format of ["yaml", "json"] as const) {
    const { problems } = await readRuleFile(`{"service_id": ${id}, "rules": []}`, format)
    expect(problems).toEqual([expect.objectContaining({ path: "service_id" })])
  }
})

test("a limit must not have leading zeros, because such a number is octal in YAML 1.1", async () => {
  const rule = (limit: string) => `rules: [{ limit: ${limit}, window: 1m, allow: [007], field: user }]`
  for (const limit of ["010", "+010", "-07"]) {
    expect((await readRuleFile(rule(limit), "yaml")).problems).toEqual([
      expect.objectContaining({ path: "rules[0].limit", message: expect.stringContaining(limit) }),
    ])
  }
  const { documents } = await readRuleFile(rule("1e3"), "yaml")
  expect(documents[0]?.rules).toEqual([{ limit: 1_000, window: "1m", allow: ["007"], field: "user" }])
})

test.each([
  "rules: []\nrules: []\n",
  '{ rules: [], "rules": [] }',
  "rules:\n  - { limit: 5, window: 1m, overrides: { ann: 1, 'ann': 2 } }\n",
  "rules:\n  - { limit: 5, window: 1m, overrides: { 7: 1, '7': 2 } }\n",
])("readRuleFile rejects a member that appears twice in %j", async (text) => {
  const [problem] = (await readRuleFile(text, "yaml")).problems
  expect(problem?.message).toMatch(/^is not YAML: the member "(rules|ann|7)" appears twice$/)
})

test("readRuleFile finds the place of a name that is too long to be shown in full", async () => {
  const text = `{"rules":[],\n "${"k".repeat(3_000)}":1, "\u202e":2}`
  expect((await readRuleFile(text, "json")).problems.map(({ line, column }) => [line, column])).toEqual([
    [2, 2],
    [2, 3008],
  ])
})

test("readRuleFile returns each document's service, version, valid rules and place", async () => {
  const text = "# two\n- service_id: 7\n  version: 3\n  rules: [{ limit: 5, window: 1m }, 9]\n- rules: []\n"
  expect((await readRuleFile(text, "yaml")).documents).toEqual([
    { service: "7", version: 3, rules: [{ limit: 5, window: "1m" }], line: 2, column: 3 },
    { rules: [], line: 5, column: 3 },
  ])
})

test("a rule without a field results in a note with its place", async () => {
  const text =
    "- service_id: a\n  rules:\n    - { field: ip, limit: 5, window: 1m }\n    - { limit: 9, window: 1h }\n"
  expect((await readRuleFile(text, "yaml")).notes).toEqual([
    {
      path: "rules[1].field",
      message: "is missing, so all requests of the service share this limit",
      accepted: '"service" to make this explicit, or "ip" to limit each client address',
      line: 4,
      column: 7,
    },
  ])
})

test("readRuleFile finds the places of thousands of problems in a few seconds", async () => {
  const length = examples(4_000, 20_000)
  const names = Array.from({ length }, (_, index) => `"n ${index}": 1`).join(", ")
  const rules = Array.from({ length }, () => "{}").join(", ")
  const began = performance.now()
  const { problems } = await readRuleFile(`{ ${names}, "rules": [${rules}] }`, "json")
  expect(problems.length).toBe(2 * length)
  expect(performance.now() - began).toBeLessThan(30_000)
})

const SHELF = new URL("../../../../test/fixtures/rules/", import.meta.url)
const files = readdirSync(SHELF).filter((name) => /\.(yaml|json)$/.test(name) && name !== "not-utf-8.yaml")

test.each(files)("readRuleFile returns the same rules and problems as fileRules for %s", async (name) => {
  const file = await readRuleFile(
    readFileSync(new URL(name, SHELF), "utf8"),
    name.endsWith("json") ? "json" : "yaml",
  )
  const source = fileRules(new URL(name, SHELF))
  const services = new Set(file.documents.map(({ service = "somebody" }) => service))
  const told = new Set<string>()
  try {
    for (const service of services.size === 0 ? ["somebody"] : services) {
      const { rules, problems } = await source.load(service)
      expect(rules).toEqual(rulesOf(file, service))
      for (const { path, message, accepted } of problems)
        told.add(JSON.stringify({ path, message, accepted }))
    }
    const found = file.problems.map(({ path, message, accepted }) =>
      JSON.stringify({ path, message, accepted }),
    )
    expect(new Set(found)).toEqual(told)
  } catch (error) {
    if (!(error instanceof RuleSourceError)) throw error
    const { message = "", line, column } = file.problems[0] ?? {}
    expect(error.message.replace(` line ${line}, column ${column}:`, "")).toContain(message)
  }
})

/** Returns what fileRules would return: the service's first document, or else the document for every service. */
function rulesOf({ documents }: RuleFile, service: string): unknown {
  const own = documents.find((document) => document.service === service)
  return (own ?? documents.find((document) => document.service === undefined))?.rules ?? []
}
