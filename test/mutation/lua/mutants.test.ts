import { existsSync, readFileSync } from "node:fs"
import { describe, expect, it } from "vitest"
import { MUTANTS } from "./mutants.ts"

const ROOT = new URL("../../../", import.meta.url)
const SCRIPTS = new URL("packages/redis/src/scripts/", ROOT)

describe("the mutants of the scripts", () => {
  it.each(MUTANTS)(
    "change a string that occurs exactly once in the script $script: $text",
    ({ script, text, replacement }) => {
      const lua = readFileSync(new URL(`${script}.lua`, SCRIPTS), "utf8")
      expect(lua.split(text)).toHaveLength(2)
      expect(replacement).not.toBe(text)
    },
  )

  it("name only existing suites", () => {
    const suites = [...new Set(MUTANTS.map(({ suite }) => suite))]
    expect(suites.filter((suite) => !existsSync(new URL(suite, ROOT)))).toEqual([])
  })
})
