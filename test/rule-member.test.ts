import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join, relative } from "node:path"
import { fileURLToPath } from "node:url"
import { afterAll, beforeAll, describe, expect, test } from "vitest"

const ROOT = fileURLToPath(new URL("..", import.meta.url))
const TYPE = "packages/core/src/rules/rule.ts"
const TABLE = "packages/core/src/rules/parsing/rule-members.ts"

/** Returns the sources in a folder, without tests and generated code. */
function sourcesIn(folder: string): string[] {
  return readdirSync(join(ROOT, folder), { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(".ts") && !/\.test(-d)?\.ts$|(^|\/)(testing|gen)\//.test(path))
    .map((path) => join(folder, path))
}

function filesWith(folders: readonly string[], names: readonly string[]): string[] {
  const name = new RegExp(`\\b(${names.join("|")})\\b`)
  return folders.flatMap(sourcesIn).filter((path) => name.test(readFileSync(join(ROOT, path), "utf8")))
}

describe("a plain member of a rule", () => {
  test.each([
    ["onMissing", "on_missing"],
    ["onStoreFailure", "on_store_failure"],
    ["shadow", "shadow"],
  ])("such as %s is named only in its type and its table, among all files that handle rules", (...names) => {
    const folders = ["core/src/rules", "rules/src", "dynamodb/src", "service/src/registering"]
    expect(
      filesWith(
        folders.map((folder) => `packages/${folder}`),
        names,
      ).sort(),
    ).toEqual([TABLE, TYPE].sort())
  })

  test("that only some algorithms use is also named in the file that lists these algorithms", () => {
    const others = filesWith(["packages/core/src/rules"], ["refill"]).filter(
      (path) => path !== TYPE && path !== TABLE,
    )
    expect(others).toEqual(["packages/core/src/rules/parsing/contradictions.ts"])
  })
})

describe("a member that is added to the type and the table", () => {
  const copy = mkdtempSync(join(tmpdir(), "sluice-member-"))
  const core = join(copy, "packages/core")
  // The copied modules have the types of the originals.
  type Documents = typeof import("../packages/core/src/rules/documents/rule-document.ts")
  type Formatting = typeof import("../packages/core/src/rules/documents/format-document.ts")
  type Parsing = typeof import("../packages/core/src/rules/parsing/parse-rule.ts")
  let documents: Documents
  let formatting: Formatting
  let parsing: Parsing
  let schema: object

  beforeAll(async () => {
    const isSource = (path: string): boolean => !/\.test(-d)?\.ts$|\/testing$/.test(relative(ROOT, path))
    cpSync(join(ROOT, "packages/core/src"), join(core, "src"), { recursive: true, filter: isSource })
    for (const file of ["rules.schema.ts", "package.json"])
      cpSync(join(ROOT, "packages/core", file), join(core, file))
    symlinkSync(join(ROOT, "packages/core/node_modules"), join(core, "node_modules"))
    symlinkSync(join(ROOT, "node_modules"), join(copy, "node_modules"))
    const table = join(copy, TABLE)
    writeFileSync(
      table,
      readFileSync(table, "utf8").replace(
        "  shadow: {",
        '  isTrial: {\n    stored: ["is_trial"],\n    shape: BOOLEAN,\n    default: false,\n    description: "True to try it.",\n  },\n  shadow: {',
      ),
    )
    documents = await import(join(core, "src/rules/documents/rule-document.ts"))
    formatting = await import(join(core, "src/rules/documents/format-document.ts"))
    parsing = await import(join(core, "src/rules/parsing/parse-rule.ts"))
    schema = (await import(join(core, "rules.schema.ts"))).rulesSchema()
  })
  afterAll(() => rmSync(copy, { recursive: true }))

  const RULE = { field: "ip", limit: 5, window: "1 minute" } as const

  test("is read from documents and written into documents", () => {
    const stored = { field: "ip", rate: { requests_per_unit: 5, unit: "minute" }, is_trial: true }
    const [rule] = documents.parseRuleDocument({ rules: [stored] })
    expect(rule).toEqual({ ...RULE, isTrial: true })
    expect(formatting.formatRuleDocument("checkout", [rule as typeof RULE]).rules).toEqual([stored])
  })

  test("is checked, with a hint for a misspelled name", () => {
    expect(documents.readRuleDocument({ rules: [{ ...RULE, is_trial: 5 }] }).problems).toMatchObject([
      { path: "rules[0].is_trial", message: "5 is not a boolean", accepted: "true or false" },
    ])
    expect(parsing.parseRules([{ ...RULE, istrial: true }], "rules").problems).toMatchObject([
      { path: "rules[0].istrial", message: expect.stringContaining('did you mean "isTrial"?') },
    ])
  })

  test("receives its default in parsed rules", () => {
    expect(parsing.parseRules([RULE, { ...RULE, name: "b", isTrial: true }], "rules").rules).toMatchObject([
      { isTrial: false },
      { isTrial: true },
    ])
  })

  test("is described by the JSON Schema", () => {
    expect(schema).toHaveProperty("definitions.rule.properties.is_trial", {
      description: "True to try it.",
      default: false,
      type: "boolean",
    })
  })
})
