import { readdirSync, readFileSync } from "node:fs"
import { expect, it } from "vitest"
import { ROOT } from "./documents.ts"

const FOLDER = `${ROOT}docs/errors/`
const PAGES = readdirSync(FOLDER).filter((name) => name !== "README.md")
/** Codes of the paced client, which is used without the core. Its guide explains them. */
const OF_THE_CLIENT = /^SLUICE_PACE_/

/** Returns the codes in the sources of all packages. */
function codesInSources(): Set<string> {
  const files = readdirSync(`${ROOT}packages`, { recursive: true, encoding: "utf8" }).filter(
    (path) => /^[\w-]+\/src\/.*\.ts$/.test(path) && !/\.test(-d)?\.ts$|\/testing\/|\/gen\//.test(path),
  )
  const found = files.flatMap((path) => [
    ...readFileSync(`${ROOT}packages/${path}`, "utf8").matchAll(
      /(?:code\W+(?:string )?=? ?|[|] |new \w+\(\s*)"(SLUICE_[A-Z_]+)"/g,
    ),
  ])
  return new Set(found.map(([, code = ""]) => code))
}

it("docs/errors has a page for each code of a warning or an error, which begins with the code", () => {
  const codes = [...codesInSources()].filter((code) => !OF_THE_CLIENT.test(code))
  const titles = PAGES.map((name) => readFileSync(FOLDER + name, "utf8").split("\n", 1)[0])
  expect(titles.sort()).toEqual(codes.map((code) => `# ${code}`).sort())
  expect(PAGES.sort()).toEqual(codes.map((code) => `${code.toLowerCase()}.md`).sort())
})

it("docs/errors/README.md lists each page once", () => {
  const list = readFileSync(`${FOLDER}README.md`, "utf8")
  const rows = [...list.matchAll(/^\| \[(\w+)\]\((\w+\.md)\)/gm)].map(([, code = "", file = ""]) => [
    file,
    code.toLowerCase(),
  ])
  expect(rows.sort()).toEqual(PAGES.map((name) => [name, name.replace(".md", "")]).sort())
})
