import { existsSync, readdirSync, readFileSync } from "node:fs"
import { describe, expect, it } from "vitest"
import { blocksOf, ROOT } from "./documents.ts"

const SELF = "test/docs/recipes.test.ts"
const PAGE = "docs/protect/README.md"
const FOLDER = `${ROOT}examples/src/recipes/`

const page = readFileSync(ROOT + PAGE, "utf8")
const blocks = blocksOf(PAGE).filter(({ testedBy }) => testedBy === SELF)
const recipes = readdirSync(FOLDER)
  .filter((name) => name.endsWith(".ts") && !name.endsWith(".test.ts"))
  .map((name) => name.replace(".ts", ""))
const sections = page.split(/^## /m).slice(1)

/** Returns the name of the file that a section links to. */
function fileOf(section: string): string {
  return /\]\(\.\.\/\.\.\/examples\/src\/recipes\/([\w-]+)\.ts\)/.exec(section)?.[1] ?? ""
}

/** Returns the lines that are neither blank nor comments. */
function codeOf(text: string): string[] {
  return text.split("\n").filter((line) => !/^\s*(\/\/.*|\/?\*.*)?$/.test(line))
}

it(`${PAGE} shows each recipe of the examples once, and lists it in its table`, () => {
  expect(sections.map(fileOf).sort()).toEqual(recipes.sort())
  expect(blocks).toHaveLength(recipes.length)
  const rows = [...page.matchAll(/^\| \[([^\]]+)\]\(#/gm)].map(([, title]) => title)
  expect(rows).toEqual(sections.map((section) => section.split("\n", 1)[0]))
})

describe.each(sections.map((section, at) => ({ name: fileOf(section), section, at })))(
  "the recipe $name",
  ({ name, section, at }) => {
    const file = `${FOLDER}${name}.ts`

    it("is shown as it is in its file", () => {
      expect(blocks[at]?.text).toBe(readFileSync(file, "utf8"))
    })

    it("has at most 25 lines of code", () => {
      expect(codeOf(readFileSync(file, "utf8")).length).toBeLessThanOrEqual(25)
    })

    it("is explained in two sentences", () => {
      const [, text = ""] = section.split("<!--", 1)[0]?.split(/\n\n/) ?? []
      expect(text.match(/[.!?](?=\s|$)/g)).toHaveLength(2)
    })

    it("has a test that imports it", () => {
      const test = `${FOLDER}${name}.test.ts`
      expect(existsSync(test) && readFileSync(test, "utf8").includes(`from "./${name}.ts"`)).toBe(true)
    })
  },
)
