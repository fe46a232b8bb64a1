import { readdirSync } from "node:fs"
import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { expect, test } from "vitest"
import { SluiceError } from "../packages/core/src/ground/errors.ts"
import { type FileRulesOptions, fileRules } from "../packages/rules/src/sources/file.ts"

const SHELF = new URL("fixtures/rules/", import.meta.url)
const files = readdirSync(SHELF)
  .filter((name) => /\.(yaml|json)$/.test(name))
  .sort()

/**
 * Returns the result of a file for the service "checkout", as text: its rules and then each problem, or the read error.
 */
async function answer(path: string | URL, options?: FileRulesOptions): Promise<string> {
  try {
    const { rules, problems, version } = await fileRules(path, options).load("checkout")
    const lines = rules.map((rule) => `  rule ${JSON.stringify(rule)}`)
    if (version !== undefined) lines.unshift(`  version ${version}`)
    return [
      ...lines,
      ...problems.map(
        ({ path, message, accepted }) =>
          `  ${path || "(all)"}: ${message}${accepted === undefined ? "" : `\n    accepted: ${accepted}`}`,
      ),
    ].join("\n")
  } catch (error) {
    if (!(error instanceof SluiceError)) throw error
    return `  ${error.code} ${error.message.replace(/"[^"]*[/\\]/, '"')}`
  }
}

test("each fixture results in its rules and in its problems with path and accepted values", async () => {
  const answers = await Promise.all(
    files.map(async (name) => `${name}\n${await answer(new URL(name, SHELF))}`),
  )
  await expect(`${answers.join("\n\n")}\n`).toMatchFileSnapshot("fixtures/rules/answers.txt")
})

test("a document without service_id applies to services without their own document", async () => {
  const source = fileRules(new URL("services.yaml", SHELF))
  const limits = async (service: string) => (await source.load(service)).rules.map(({ limit }) => limit)
  expect(await limits("checkout")).toEqual([5])
  expect(await limits("7")).toEqual([500])
  expect(await limits("search")).toEqual([100])
})

test("a file that is not a rules file is rejected, and the error says what to do", async () => {
  const folder = await mkdtemp(join(tmpdir(), "sluice-rules-"))
  try {
    const huge = join(folder, "huge.yaml")
    await writeFile(huge, `rules: []\n#${"x".repeat(1024 * 1024)}\n`)
    const deep = join(folder, "deep.yaml")
    await writeFile(deep, "[".repeat(100_000))
    expect(await answer(huge)).toBe(
      '  SLUICE_RULE_SOURCE Rules file "huge.yaml" has 1048588 bytes, more than 1048576: shorten it, or raise the option maxBytes',
    )
    expect(await answer(huge, { maxBytes: 1048588 })).toBe("")
    expect(await answer(deep)).toMatch(
      /^ {2}SLUICE_RULE_SOURCE Rules file "deep.yaml" is not YAML: line 1, column \d+: /,
    )
    expect(await answer(join(folder, "missing.yaml"))).toBe(
      '  SLUICE_RULE_SOURCE Rules file "missing.yaml" does not exist: create it, or correct the path',
    )
    expect(await answer(join(huge, "below.yaml"))).toBe(
      '  SLUICE_RULE_SOURCE Rules file "below.yaml" does not exist: create it, or correct the path',
    )
    expect(await answer(folder)).toMatch(/is not a file: give the path of a YAML or JSON file$/)
  } finally {
    await rm(folder, { recursive: true })
  }
})
