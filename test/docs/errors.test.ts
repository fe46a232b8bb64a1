import { readdirSync, readFileSync } from "node:fs"
import { expect, it } from "vitest"
import { ROOT } from "./documents.ts"

const FOLDER = `${ROOT}docs/errors/`
const PAGES = readdirSync(FOLDER).filter((name) => name !== "README.md")
/** Codes of the paced client, which is used without the core. The guide for the client explains these codes. */
const OF_THE_CLIENT = /^SLUICE_PACE_/

const SOURCES = [
  // The stub that Node loads instead of a package that cannot be loaded.
  "tsdown.config.ts",
  ...readdirSync(`${ROOT}packages`, { recursive: true, encoding: "utf8" })
    .filter(
      (path) => /^[\w-]+\/src\/.*\.ts$/.test(path) && !/\.test(-d)?\.ts$|\/testing\/|\/gen\//.test(path),
    )
    .map((path) => `packages/${path}`),
].map((path) => readFileSync(ROOT + path, "utf8"))

it("docs/errors has a page for the code of each warning and error", () => {
  const codes = SOURCES.flatMap((text) => [
    ...text.matchAll(/(?:code\W+(?:string )?=? ?|[|] |new \w+\(\s*)"(SLUICE_[A-Z_]+)"/g),
  ]).map(([, code = ""]) => code)
  const missing = codes.filter(
    (code) => !OF_THE_CLIENT.test(code) && !PAGES.includes(`${code.toLowerCase()}.md`),
  )
  expect(missing).toEqual([])
})

it.each(PAGES)("docs/errors/%s begins with a code that the sources contain", (name) => {
  const code = name.replace(".md", "").toUpperCase()
  expect(readFileSync(FOLDER + name, "utf8").split("\n", 1)[0]).toBe(`# ${code}`)
  expect(SOURCES.some((text) => text.includes(`"${code}"`))).toBe(true)
})

it("docs/errors/README.md lists each page once", () => {
  const list = readFileSync(`${FOLDER}README.md`, "utf8")
  const links = [...list.matchAll(/\[(SLUICE_\w+)\]\((\w+\.md)\)/g)].map(([, code = "", file = ""]) => [
    file,
    code.toLowerCase(),
  ])
  expect(links.sort()).toEqual(PAGES.map((name) => [name, name.replace(".md", "")]).sort())
})
