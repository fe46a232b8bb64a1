import { existsSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { blocksOf, findDocuments, ROOT } from "./documents.ts"

const SELF = "test/docs/recipes.test.ts"
const FOLDER = `${ROOT}examples/src/recipes/`

/** The pages that show recipes. */
const PAGES = [
  "docs/protect/graphql-and-trpc.md",
  "docs/protect/jobs-and-messages.md",
  "docs/protect/llm-tokens.md",
  "docs/protect/login.md",
  "docs/protect/plans.md",
  "docs/protect/sign-up-and-sms.md",
  "docs/protect/webhooks.md",
  "docs/protect/websockets.md",
]

const shown = findDocuments().flatMap((document) =>
  blocksOf(document)
    .filter(({ testedBy }) => testedBy === SELF)
    .map((block) => ({ document, block, section: sectionAt(document, block.line) })),
)
const recipes = readdirSync(FOLDER)
  .filter((name) => name.endsWith(".ts") && !name.endsWith(".test.ts"))
  .map((name) => name.replace(".ts", ""))

/** Returns the section of a document that contains the line, from its heading. */
function sectionAt(document: string, line: number): string {
  const lines = readFileSync(ROOT + document, "utf8").split("\n")
  const starts = lines.flatMap((text, at) => (/^##? /.test(text) && at < line ? [at] : []))
  const rest = lines.slice(starts.at(-1))
  const end = rest.findIndex((text, at) => at > 0 && /^##? /.test(text))
  return rest.slice(0, end === -1 ? undefined : end).join("\n")
}

/** Returns the name of the file that a section links to. */
function fileOf(section: string): string {
  return /\]\(\.\.\/\.\.\/examples\/src\/recipes\/([\w-]+)\.ts\)/.exec(section)?.[1] ?? ""
}

/** Returns the lines that are neither blank nor comments. */
function codeOf(text: string): string[] {
  return text.split("\n").filter((line) => !/^\s*(\/\/.*|\/?\*.*)?$/.test(line))
}

it("the pages show each recipe of the examples once, and docs/protect/README.md lists it", () => {
  expect(shown.map(({ section }) => fileOf(section)).sort()).toEqual(recipes.sort())
  const table = readFileSync(`${ROOT}docs/protect/README.md`, "utf8")
  const links = [...table.matchAll(/^\|.*\| \[[^\]]+\]\(([^)#]+)/gm)].map(([, path = ""]) =>
    join("docs/protect", path),
  )
  expect([...new Set(links)].sort()).toEqual(PAGES)
  expect([...new Set(shown.map(({ document }) => document))].sort()).toEqual(PAGES)
  expect(links).toHaveLength(recipes.length)
})

describe.each(shown.map(({ section, block }) => ({ name: fileOf(section), section, block })))(
  "the recipe $name",
  ({ name, section, block }) => {
    const file = `${FOLDER}${name}.ts`

    it("is shown exactly as in its file", () => {
      expect(block.text).toBe(readFileSync(file, "utf8"))
    })

    it("has at most 52 lines of code, with at most 84 characters each", () => {
      const text = readFileSync(file, "utf8")
      expect(codeOf(text).length).toBeLessThanOrEqual(52)
      expect(text.split("\n").filter((line) => line.length > 84)).toEqual([])
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
