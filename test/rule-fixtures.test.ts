import { readdirSync } from "node:fs"
import { expect, test } from "vitest"
import { SluiceError } from "../packages/core/src/ground/errors.ts"
import { fileRules } from "../packages/rules/src/sources/file.ts"

const SHELF = new URL("fixtures/rules/", import.meta.url)
const files = readdirSync(SHELF)
  .filter((name) => /\.(yaml|json)$/.test(name))
  .sort()

/**
 * Returns the result of a file for the service "checkout" as text. The text contains the rules and then each problem,
 * or the read error.
 */
async function answer(path: URL): Promise<string> {
  try {
    const { rules, problems, version } = await fileRules(path).load("checkout")
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

test("each fixture leads to the rules and problems that fixtures/rules/answers.txt lists", async () => {
  const answers = await Promise.all(
    files.map(async (name) => `${name}\n${await answer(new URL(name, SHELF))}`),
  )
  await expect(`${answers.join("\n\n")}\n`).toMatchFileSnapshot("fixtures/rules/answers.txt")
})
