import { readdirSync, readFileSync } from "node:fs"
import { describe, expect, it } from "vitest"
import { MOVED } from "../../docs/.vitepress/moved.ts"
import { addressOf, GROUPS, PAGES, pageAt } from "../../docs/.vitepress/pages.ts"
import { ROOT } from "../docs/documents.ts"

const DOCS = `${ROOT}docs/`
const FOLDERS = [
  "client",
  "extend",
  "migrate",
  "production",
  "protect",
  "reference",
  "rules",
  "scale",
  "service",
  "start",
]
const files = FOLDERS.flatMap((folder) =>
  readdirSync(DOCS + folder)
    .filter((name) => name.endsWith(".md"))
    .map((name) => `${folder}/${name.replace(".md", "")}`),
)

/** Returns the lines of a page outside of code blocks. */
function proseOf(text: string): string[] {
  return text.replace(/^ *```.*?^ *```$/gms, "").split("\n")
}

it("the map of the site lists each page once", () => {
  const listed = GROUPS.flatMap(({ pages }) => pages.map(({ path }) => path))
  expect(listed.toSorted()).toEqual(files.toSorted())
})

it("each address of the site is listed, and a listed address still exists or redirects to its new page", () => {
  const errors = readdirSync(`${DOCS}errors`).map((name) => `errors/${name.replace(".md", "")}`)
  const addresses = new Set(["/", ...[...files, ...errors].map(addressOf)])
  const listed = readFileSync(`${DOCS}.vitepress/addresses.txt`, "utf8").trimEnd().split("\n")
  // Add a new page to the list. Before you remove a released page, add a row for its address to moved.ts.
  expect([...addresses].filter((address) => !listed.includes(address))).toEqual([])
  expect(listed.filter((address) => !addresses.has(address) && MOVED[address] === undefined)).toEqual([])
  expect(Object.values(MOVED).filter((address) => !addresses.has(address))).toEqual([])
})

it("pageAt finds a page by its address below the base of the site", () => {
  expect(pageAt("/protect/login#second-factor", "/")?.path).toBe("protect/login")
  expect(pageAt("/sluice/protect/", "/sluice/")?.path).toBe("protect/README")
  expect(pageAt("/sluice/no/such-page", "/sluice/")).toBeUndefined()
})

describe.each([...PAGES.values()])("the page $path", ({ path, title, description, words = "" }) => {
  const text = readFileSync(`${DOCS}${path}.md`, "utf8")

  it("has a title, a description and search words of the right length", () => {
    expect(title.split(" ").length).toBeLessThanOrEqual(4)
    expect(description.length).toBeLessThanOrEqual(120)
    expect(words.split(" ").length).toBeLessThanOrEqual(25)
  })

  it("contains at most 1,300 words", () => {
    // The alt text of a picture is for readers who cannot see it.
    const count = text
      .replace(/!\[[^\]]*\]/g, "")
      .split(/\s+/)
      .filter(Boolean).length
    expect(count).toBeLessThanOrEqual(1_300)
  })

  it("begins with a single title, and shows code, a table or a picture in its first lines", () => {
    expect(proseOf(text).filter((line) => line.startsWith("# "))).toHaveLength(1)
    // A page that lists questions shows the questions instead.
    if (path === "start/questions") return
    expect(text.split("\n").slice(0, 15).join("\n")).toMatch(/^ *```|^\||^!\[/m)
  })

  it("contains only tables whose columns have names", () => {
    const lines = proseOf(text)
    const headers = lines.filter((_, at) => /^\|[ :|-]+\|$/.test(lines[at + 1] ?? ""))
    expect(
      headers.filter((line) =>
        line
          .split("|")
          .slice(1, -1)
          .some((cell) => cell.trim() === ""),
      ),
    ).toEqual([])
  })

  it("uses only Markdown that a code host renders", () => {
    expect(text.startsWith("---")).toBe(false)
    expect(proseOf(text).filter((line) => /^:::|\{\{/.test(line))).toEqual([])
  })
})
