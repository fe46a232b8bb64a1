import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import fc from "fast-check"
import { describe, expect, it, onTestFinished } from "vitest"
import { parse, stringify } from "yaml"
import { sluice } from "../cli/in-process.ts"
import type { Block } from "../docs/blocks.ts"
import { commandLines } from "../docs/shell/words.ts"
import { blocksTestedBy } from "../docs/shown.ts"
import { examples } from "../test-length.ts"
import { type ConfiguredDescriptor, type Entry, EnvoyModel } from "./envoy-model.ts"
import { startEnvoy } from "./envoy-started.ts"

/** Number of random files whose decisions are compared with Envoy's. */
const FILES = examples(4, 12)
/** Number of levels that would overflow the stack of a recursive reader. The command reads files of at most 1 MiB. */
const DEPTH = examples(30_000, 200_000)

const imported = (stdin: string, ...argv: string[]) => sluice(["rules", "import", "-", ...argv], { stdin })

/** Returns the rules imported from a file, which must express the file completely. */
async function rulesOf(stdin: string): Promise<string> {
  const { code, out, err } = await imported(stdin)
  expect({ code, err: err.replace(/^(note: .+\n)+/, "") }).toEqual({ code: 0, err: "" })
  return out
}

const asDescriptor = (entries: readonly Entry[]) => ({
  entries: entries.map(([key, value]) => ({ key, value })),
})

const MARKETING = `
domain: messaging
descriptors:
  - key: message_type
    value: marketing
    rate_limit: { unit: day, requests_per_unit: 5 }
`

const MESSAGING = `
domain: messaging
descriptors:
  # Only allow 5 marketing messages a day
  - key: message_type
    value: marketing
    descriptors:
      - key: to_number
        rate_limit: { unit: day, requests_per_unit: 5 }
  # Only allow 100 messages a day to any unique phone number
  - key: to_number
    rate_limit: { unit: day, requests_per_unit: 7 }
`

it.each([
  ["lists", "[".repeat(DEPTH)],
  ["maps", `domain: d\ndescriptors: ${"{ a: ".repeat(DEPTH)}`],
  ["lists in blocks", `- `.repeat(DEPTH)],
  ["names", `${"? ".repeat(DEPTH)}a`],
  ["the most levels and one", `${"[".repeat(49)}${"]".repeat(49)}`],
])("the import reports the position of deeply nested %s in a file", async (_what, file) => {
  const { code, out, err } = await imported(file)
  expect({ code, out }).toEqual({ code: 1, out: "" })
  expect(err).toMatch(/^standard input:[12]:\d+: values are nested deeper than 48 levels\n/)
})

it("the import quickly reports a file whose aliases repeat lists of aliases", async () => {
  const levels = Array.from({ length: 8 }, (_, i) => {
    const below = i === 0 ? "" : `, descriptors: *l${i - 1}`
    const item = (key: number) => `{ key: k${key}${below} }`
    return `l${i}: &l${i} [${Array.from({ length: 10 }, (_, key) => item(key)).join(", ")}]`
  })
  const { code, err } = await imported(`domain: d\n${levels.join("\n")}\ndescriptors: *l7\n`)
  expect(code).toBe(1)
  expect(err).toContain("is left out, with all after it: a file may have 100000 descriptors")
})

it.each([
  ["10", 10],
  ["010", 8],
  ["0100", 64],
  ["0o17", 15],
  ["0x10", 16],
  ["0b101", 5],
  ["1_000", 1_000],
  ["+5", 5],
  ["1e3", 1_000],
  ["5.0", 5],
  ["08", 8],
])("the import reads requests_per_unit %s as %j, like Envoy's service", async (written, limit) => {
  const file = `domain: d\ndescriptors: [{ key: user, value: 010, rate_limit: { unit: minute, requests_per_unit: ${written} } }]`
  const { rules } = parse(await rulesOf(file))
  expect(rules).toMatchObject([{ rate: { requests_per_unit: limit }, match: { fields: { user: ["010"] } } }])
})

it.each([
  '"10"',
  "1:30",
  "2001-01-01",
  "-1",
  "1.5",
  "4294967296",
  "0x1_0000_0000",
  "1__0x",
  "many",
  ".inf",
  "true",
])("the import rejects requests_per_unit %s", async (written) => {
  const file = `domain: d\ndescriptors: [{ key: user, rate_limit: { unit: minute, requests_per_unit: ${written} } }]`
  const { code, out } = await imported(file)
  expect({ code, rules: parse(out)?.rules ?? [] }).toEqual({ code: 1, rules: [] })
})

it.each([
  ["yes", true],
  ["on", true],
  ["Y", true],
  ["True", true],
  ["no", undefined],
  ["OFF", undefined],
])("the import reads shadow_mode %s as %j, like Envoy's service", async (written, shadow) => {
  const limit = "rate_limit: { unit: minute, requests_per_unit: 1 }"
  const { rules } = parse(
    await rulesOf(`domain: d\ndescriptors: [{ key: user, shadow_mode: ${written}, ${limit} }]`),
  )
  expect(rules[0].shadow).toBe(shadow)
})

describe("rules imported from Envoy's files, over Envoy's protocol", () => {
  it("limit marketing messages to five a day", async () => {
    const [command] = blocksTestedBy("test/service/envoy-import.test.ts", "docs/service/envoy.md", 1) as [
      Block,
    ]
    const folder = await mkdtemp(join(tmpdir(), "sluice-import-"))
    onTestFinished(() => rm(folder, { recursive: true }))
    await writeFile(join(folder, "messaging.yaml"), MARKETING)
    const [, ...words] = commandLines(command.text)[0]?.words ?? []
    const argv = words.map((word) => (word.endsWith(".yaml") ? join(folder, word) : word))
    expect(await sluice(argv)).toEqual({ code: 0, out: `${join(folder, "rules.yaml")}: 1 rule\n`, err: "" })
    const rules = await readFile(join(folder, "rules.yaml"), "utf8")
    expect(parse(rules)).toEqual({
      service_id: "messaging",
      rules: [
        {
          name: "message_type=marketing",
          field: "message_type",
          rate: { requests_per_unit: 5, unit: "day" },
          match: { fields: { descriptor_keys: ["message_type"], message_type: ["marketing"] } },
          algorithm: "fixed-window",
          count_rejected: true,
        },
      ],
    })
    const { envoy } = await startEnvoy(rules)
    const ask = async (type: string) => (await envoy.ask("messaging", [{ message_type: type }])).overall
    for (let sent = 0; sent < 5; sent++) expect(await ask("marketing")).toBe("OK")
    expect(await ask("marketing")).toBe("OVER_LIMIT")
    expect(await ask("login")).toBe("OK")
  })

  it("count a descriptor only under the limit with the same keys", async () => {
    const { envoy, clock } = await startEnvoy(await rulesOf(MESSAGING))
    const ask = async (...descriptors: Record<string, string>[]) =>
      (await envoy.ask("messaging", descriptors)).overall
    const [marketing, number] = [{ message_type: "marketing", to_number: "1" }, { to_number: "1" }]
    for (let sent = 0; sent < 5; sent++) expect(await ask(marketing, number)).toBe("OK")
    expect(await ask(marketing, number)).toBe("OVER_LIMIT")
    // The refused request has taken no units from the separate limit of this phone number.
    expect([await ask(number), await ask(number), await ask(number)]).toEqual(["OK", "OK", "OVER_LIMIT"])
    // The order of the entries matters.
    expect(await ask({ to_number: "1", message_type: "marketing" })).toBe("OK")
    expect(await ask({ message_type: "marketing" })).toBe("OK")
    clock.advance(86_400_000)
    expect(await ask(marketing)).toBe("OK")
  })

  it("decide random requests under random files like Envoy", async () => {
    const value = fc.constantFrom("x", "y")
    const limit = fc.oneof(
      {
        weight: 8,
        arbitrary: fc.record({
          unit: fc.constantFrom("second", "minute", "month"),
          // Sluice does not count a request with more hits than the limit.
          requests_per_unit: fc.integer({ min: 2, max: 3 }),
        }),
      },
      { weight: 1, arbitrary: fc.constant({ unlimited: true }) },
      { weight: 1, arbitrary: fc.constant({ unit: "year", requests_per_unit: 0 }) },
    )
    const level = (keys: readonly string[], below?: fc.Arbitrary<readonly ConfiguredDescriptor[]>) =>
      fc.uniqueArray(
        fc.record(
          {
            key: fc.constantFrom(...keys),
            value,
            rate_limit: limit,
            shadow_mode: fc.constantFrom(false, false, true),
            ...(below !== undefined && { descriptors: below }),
          },
          { requiredKeys: ["key", "rate_limit"] },
        ),
        { selector: (each) => `${each.key} ${each.value}`, minLength: 1, maxLength: 3 },
      ) as fc.Arbitrary<readonly ConfiguredDescriptor[]>
    const files = fc
      .sample(level(["a", "b"], level(["b", "c"], level(["c"]))), { numRuns: 80, seed: 42 })
      .map((descriptors, index) => ({ domain: `d${index}`, descriptors }))
    const whole: ((typeof files)[number] & { readonly rules: string })[] = []
    for (const file of files) {
      if (whole.length === FILES) break
      const { code, out } = await imported(stringify(file))
      if (code === 0 && out !== "") whole.push({ ...file, rules: out })
    }
    expect(whole).toHaveLength(FILES)
    const { envoy, clock } = await startEnvoy(whole.map(({ rules }) => rules).join("---\n"))
    const keys = fc.constantFrom("a", "a", "b", "b", "ab", "ac", "abc", "ba")
    const entries = keys.chain((chain) =>
      fc.tuple(...[...chain].map((key) => fc.tuple(fc.constant(key), value))),
    )
    const requests = fc.array(fc.tuple(entries, fc.integer({ min: 1, max: 2 })), {
      ...{ minLength: 40, maxLength: 40, size: "max" },
    })
    const verdicts: Record<string, number> = { OK: 0, OVER_LIMIT: 0 }
    for (const [index, { domain, descriptors }] of whole.entries()) {
      const model = new EnvoyModel(descriptors)
      const [asked = []] = fc.sample(requests, { numRuns: 1, seed: index })
      for (const [at, [given, hits]] of asked.entries()) {
        if (at % 15 === 14) clock.advance(700)
        if (at === 36) clock.advance(29 * 86_400_000)
        const { overall } = await envoy.ask(domain, [asDescriptor(given)], hits)
        expect([stringify(descriptors), given, hits, overall]).toEqual([
          stringify(descriptors),
          given,
          hits,
          model.ask(given, hits, clock.now()),
        ])
        verdicts[overall] = (verdicts[overall] ?? 0) + 1
      }
    }
    expect(verdicts.OVER_LIMIT).toBeGreaterThan(2 * FILES)
    expect(verdicts.OK).toBeGreaterThan(100)
  })
})

describe("sluice rules import", () => {
  it.each([
    ["month", "note: a month is a calendar month in UTC, but 30 days in Envoy's service"],
    ["year", "note: a year is a calendar year in UTC, but 365 days in Envoy's service"],
    ["week", undefined],
  ])("notes how the unit %s differs from Envoy's", async (unit, note) => {
    const { err } = await imported(
      `{ domain: d, descriptors: [{ key: a, rate_limit: { unit: ${unit}, requests_per_unit: 9 } }] }`,
    )
    if (note === undefined) expect(err).toBe("")
    else expect(err).toContain(note)
  })

  it("imports default values, other units, names, shadow mode and limits of 0", async () => {
    const rules = parse(
      await rulesOf(`
domain: 1
descriptors:
  - key: remote_address
    rate_limit: { unit: SECOND, requests_per_unit: 10, name: per ip }
  - { key: remote_address, value: 50.0.0.5, rate_limit: { unit: second, requests_per_unit: 0 } }
  - { key: remote_address, value: 010, rate_limit: { unlimited: true } }
  - key: "header:X-Key"
    shadow_mode: true
    rate_limit: { unit: month, requests_per_unit: 9 }
    descriptors: [{ key: a, rate_limit: { unit: year, requests_per_unit: 7, name: per ip } }]
`),
    )
    const common = { algorithm: "fixed-window", count_rejected: true }
    expect(rules).toEqual({
      service_id: "1",
      rules: [
        {
          ...{ name: "per ip", field: "remote_address", rate: { requests_per_unit: 10, unit: "second" } },
          match: { fields: { descriptor_keys: ["remote_address"] } },
          ...{ allow: ["50.0.0.5", "010"], on_missing: "shared", ...common },
        },
        {
          ...{ name: "remote_address=50.0.0.5", field: "remote_address" },
          rate: { requests_per_unit: 1, unit: "second" },
          match: { fields: { descriptor_keys: ["remote_address"], remote_address: ["50.0.0.5"] } },
          ...{ deny: ["50.0.0.5"], ...common },
        },
        {
          ...{ name: "header:X-Key", field: "header:x-key", limit: 9, per: "month", shadow: true },
          match: { fields: { descriptor_keys: ["header:x-key"] } },
          ...{ on_missing: "shared", ...common },
        },
        {
          ...{ name: "per ip-2", field: ["header:x-key", "a"], limit: 7, per: "year" },
          match: { fields: { descriptor_keys: ["header:x-key,a"] } },
          ...{ on_missing: "shared", ...common },
        },
      ],
    })
  })

  it.each([
    [
      "a value with *",
      "- { key: a, value: foo*, rate_limit: LIMIT }",
      "3:3: descriptors[0] is left out, with every",
    ],
    [
      "a default beside *",
      "- { key: a, rate_limit: LIMIT }\n- { key: a, value: x* }",
      "3:3: descriptors[0] is left out",
    ],
    [
      "a default of several keys beside a value",
      "- { key: a, descriptors: [{ key: b, rate_limit: LIMIT }, { key: b, value: x }] }",
      "3:49: descriptors[0].descriptors[0].rate_limit is left out: a rule that counts by several keys",
    ],
    [
      "a limit of 0 for every value",
      "- { key: a, rate_limit: { unit: day, requests_per_unit: 0 } }",
      "rate_limit is left out: a rule cannot refuse every request",
    ],
    [
      "a key that is a field of Sluice",
      "- { key: method, rate_limit: LIMIT }",
      'the key "method" has another meaning',
    ],
    ["a key that no field can have", "- { key: a b, rate_limit: LIMIT }", '"a b" is not a field'],
    ["a key with a comma", '- { key: "query:a,b", rate_limit: LIMIT }', "contains a comma"],
    [
      "a key twice",
      "- { key: a, descriptors: [{ key: a, value: x, rate_limit: LIMIT }] }",
      'the key "a" occurs twice',
    ],
    [
      "replaces",
      "- { key: a, rate_limit: { unit: day, requests_per_unit: 1, replaces: [{ name: b }] } }",
      "3:70: descriptors[0].rate_limit.replaces is ignored",
    ],
    [
      "detailed_metric",
      "- { key: a, detailed_metric: true, rate_limit: LIMIT }",
      "descriptors[0].detailed_metric is left out: it only changes",
    ],
    [
      "value_to_metric",
      "- { key: a, value_to_metric: true, rate_limit: LIMIT }",
      "value_to_metric is left out: it only changes",
    ],
    [
      "share_threshold",
      "- { key: a, share_threshold: true, rate_limit: LIMIT }",
      "share_threshold is left out",
    ],
    ["quota_mode", "- { key: a, quota_mode: true, rate_limit: LIMIT }", "quota_mode is imported as shadow"],
    ["metadata", "- { key: a, metadata: { x: 1 }, rate_limit: LIMIT }", "metadata is left out"],
    [
      "an unknown member",
      "- { key: a, rate_limt: LIMIT }",
      "3:13: descriptors[0].rate_limt is left out: expected key, value",
    ],
    [
      "an unknown unit",
      "- { key: a, rate_limit: { unit: fortnight, requests_per_unit: 1 } }",
      '"fortnight" is not a unit: expected second',
    ],
    [
      "a missing unit",
      "- { key: a, rate_limit: { requests_per_unit: 1 } }",
      '3:25: descriptors[0].rate_limit.unit "" is not a unit',
    ],
    [
      "a negative limit",
      "- { key: a, rate_limit: { unit: day, requests_per_unit: -1 } }",
      "is not a number of requests",
    ],
    ["a descriptor without a key", "- { value: a, rate_limit: LIMIT }", "descriptors[0] has no key"],
    [
      "the same descriptor twice",
      "- { key: a, rate_limit: LIMIT }\n- { key: a, rate_limit: LIMIT }",
      "4:3: descriptors[1] is left out: Envoy rejects a second",
    ],
    ["a list that is not one", "{ key: a, rate_limit: LIMIT }", "descriptors is not a list"],
    [
      "a shadow mode that is not a boolean",
      "- { key: a, shadow_mode: sometimes, rate_limit: LIMIT }",
      "shadow_mode is not true or false",
    ],
  ])(
    "reports %s with its position, imports the rest, and exits with code 1",
    async (_, descriptors, said) => {
      const isList = descriptors.startsWith("-")
      const text = isList
        ? `domain: shop\ndescriptors:\n${descriptors}\n- { key: rest, rate_limit: LIMIT }\n`
        : `domain: shop\ndescriptors: ${descriptors}\n`
      const limit = "{ unit: day, requests_per_unit: 1 }"
      const { code, out, err } = await imported(text.replaceAll("LIMIT", limit))
      expect(code).toBe(1)
      expect(err).toContain(said)
      expect(err).toMatch(/\n\d+ parts? of standard input cannot be expressed\n$/)
      if (!isList) return
      expect(parse(out).rules.map(({ name }: { name: string }) => name)).toContain("rest")
      // The rules file itself contains comments about the missing limits.
      expect(out).toMatch(/^# Not expressed by these rules:\n# {3}standard input:\d+:\d+: /)
    },
  )

  it.each([
    ["text that is not YAML", "domain: [", /standard input:1:\d+: .+\n/],
    ["an empty file", "", /standard input:1:1: has no domain, which names the service\n/],
    ["a list", "- a", /standard input:1:1: is not a map, so it is left out\n/],
    [
      "a file without a domain",
      "descriptors: [{ key: a, rate_limit: { unit: day, requests_per_unit: 1 } }]",
      /1:1: has no domain/,
    ],
  ])("imports nothing from %s", async (_, text, said) => {
    const { code, out, err } = await imported(text)
    expect({ code, out }).toEqual({ code: 1, out: "" })
    expect(err).toMatch(said)
  })

  it("reads aliases and only the first document, like Envoy", async () => {
    const text = `domain: shop
descriptors:
  - { key: a, rate_limit: &one { unit: day, requests_per_unit: 1 } }
  - { key: b, rate_limit: *one }
---
domain: other
`
    const { code, out, err } = await imported(text)
    expect(code).toBe(1)
    expect(err).toContain("standard input:5:1: is left out: Envoy reads only the first document of a file\n")
    expect(parse(out).rules).toMatchObject([{ name: "a" }, { name: "b", rate: { requests_per_unit: 1 } }])
  })

  it.each([
    ["a limit", "- { key: a, rate_limit: *dayly }"],
    ["a value", "- { key: a, value: *partner, rate_limit: { unit: day, requests_per_unit: 1 } }"],
  ])("imports nothing if an alias for %s has no anchor", async (_about, descriptor) => {
    const { code, out, err } = await imported(`domain: shop\ndescriptors:\n  ${descriptor}\n`)
    expect({ code, out }).toEqual({ code: 1, out: "" })
    expect(err).toMatch(/standard input:3:\d+: the alias \*(dayly|partner) has no anchor before it\n/)
  })

  it("reports a list that contains itself", async () => {
    const { code, err } = await imported("domain: shop\ndescriptors: &all [{ key: a, descriptors: *all }]\n")
    expect(code).toBe(1)
    expect(err).toContain("is left out: it is nested deeper than 16 levels")
  })

  it("replaces a file only with a complete import, even if the import contains no rules", async () => {
    const folder = await mkdtemp(join(tmpdir(), "sluice-import-"))
    onTestFinished(() => rm(folder, { recursive: true }))
    const file = join(folder, "rules.yaml")
    const limit = "rate_limit: { unit: day, requests_per_unit: 1 }"
    const first = await imported(`domain: shop\ndescriptors: [{ key: a, ${limit} }]\n`, "-o", file)
    expect(first.code).toBe(0)
    const before = await readFile(file, "utf8")
    const partly = `domain: shop\ndescriptors: [{ key: b, metadata: { x: 1 }, ${limit} }]\n`
    const { code, err } = await imported(partly, "-o", file)
    expect(code).toBe(1)
    expect(err).toContain(`${file} is there already and stays as it is; write to a new file with --output\n`)
    const asJson = await imported(partly, "-o", file, "--json")
    expect(JSON.parse(asJson.out)).not.toHaveProperty("output")
    expect(await readFile(file, "utf8")).toBe(before)
    const none = await imported("domain: shop\ndescriptors: []\n", "-o", file)
    expect({ code: none.code, out: none.out }).toEqual({ code: 0, out: `${file}: 0 rules\n` })
    expect(parse(await readFile(file, "utf8"))).toEqual({ service_id: "shop", rules: [] })
  })

  it("gives every rule a different valid name", async () => {
    const long = "x".repeat(60)
    const limit = "rate_limit: { unit: day, requests_per_unit: 1 }"
    const rules = await rulesOf(`
domain: shop
descriptors:
  - { key: a, value: 'say "é"', ${limit} }
  - { key: a, value: 'say _é_', ${limit} }
  - { key: a, value: ${long}1, ${limit} }
  - { key: a, value: ${long}1234, ${limit} }
`)
    const names = parse(rules).rules.map(({ name }: { name: string }) => name)
    expect(names).toEqual(["a=say ___", "a=say ___-2", `a=${long}1`.slice(0, 64), `a=${long}12`])
  })

  it("prints a document and its problems as JSON", async () => {
    const text =
      "domain: shop\ndescriptors: [{ key: a, metadata: {}, rate_limit: { unit: day, requests_per_unit: 1 } }]\n"
    const { code, out } = await imported(text, "--json")
    expect(code).toBe(1)
    expect(JSON.parse(out)).toMatchObject({
      ...{ ok: false, rules: 1, document: { service_id: "shop", rules: [{ name: "a" }] } },
      problems: [{ file: "standard input", line: 2, column: 35, path: "descriptors[0].metadata" }],
    })
  })
})
