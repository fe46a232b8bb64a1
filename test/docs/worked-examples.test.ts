import { readdirSync, readFileSync } from "node:fs"
import { expect, it } from "vitest"
import { ROOT } from "./documents.ts"

const FOLDER = "test/worked-examples/"

/** Returns the beginnings of the test titles in a file, such as "35 of 40" of "35 of 40: with 50 requests …". */
function namesIn(file: string): string[] {
  const titles = readFileSync(ROOT + file, "utf8").matchAll(/(?:^ *|\()"([^"\n]+?): [^"\n]+",/gm)
  return [...titles].map(([, name = ""]) => name)
}

it("docs/inside/worked-examples.md lists every worked example, with the file of its test", () => {
  const files = readdirSync(ROOT + FOLDER).filter((name) => name.endsWith(".test.ts"))
  const tested = files.flatMap((file) => namesIn(FOLDER + file).map((name) => `${name} ${FOLDER}${file}`))
  expect(new Set(tested).size).toBeGreaterThan(20)
  const page = readFileSync(`${ROOT}docs/inside/worked-examples.md`, "utf8")
  const rows = page.matchAll(/^\| \*\*(.+?)\*\*.*\]\(\.\.\/\.\.\/(\S+)\) \|$/gm)
  const listed = [...rows].map(([, name, file]) => `${name} ${file}`)
  expect(listed.sort()).toEqual([...new Set(tested)].sort())
})
