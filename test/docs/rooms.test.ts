import { existsSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { describe, expect, it } from "vitest"

const root = fileURLToPath(new URL("../..", import.meta.url))

/** Returns the names of the folders in a folder. */
function foldersIn(folder: string): readonly string[] {
  const entries = readdirSync(join(root, folder), { withFileTypes: true })
  return entries.filter((entry) => entry.isDirectory()).map(({ name }) => name)
}

const PACKAGES = foldersIn("packages").map((name) => `packages/${name}/src`)
const CORE = "packages/core/src"
const ROOMS = [
  ...PACKAGES.filter((folder) => folder !== CORE),
  ...foldersIn(CORE).map((name) => `${CORE}/${name}`),
]

const FIRST = /^Begin with \[(?<file>[\w./-]+)\]\(\k<file>\)\.$/gm
const NAME = /^- \*\*`(?<name>\w+)`\*\* in \[(?<file>[\w./-]+)\]\(\k<file>\): (?<sentence>.+)$/gm

/** Returns the named groups of each match. */
function groupsOf(text: string, pattern: RegExp): readonly Readonly<Record<string, string>>[] {
  return [...text.matchAll(pattern)].map(({ groups }) => groups ?? {})
}

describe.each(ROOMS)("the README of %s", (room) => {
  const readme = readFileSync(join(root, room, "README.md"), "utf8")
  const names = groupsOf(readme, NAME)

  it("names a single file to read first", () => {
    const files = groupsOf(readme, FIRST).map(({ file = "" }) => file)
    expect(files).toHaveLength(1)
    expect(files.filter((file) => !existsSync(join(root, room, file)))).toEqual([])
  })

  it("explains the five most important names in one sentence each", () => {
    expect(names).toHaveLength(5)
    for (const { sentence = "" } of names) {
      expect(sentence).toMatch(/^[A-Z][^.]*(?:`[^`]*`[^.]*)*\.$/)
      expect(sentence.split(" ").length, sentence).toBeLessThanOrEqual(25)
    }
  })

  it("links each name to the file that declares it", () => {
    const wrong = names.filter(({ name, file = "" }) => {
      const declaration = new RegExp(
        `^export (?:abstract |async )?(?:class|interface|function|const|type) ${name}\\b`,
        "m",
      )
      return !declaration.test(readFileSync(join(root, room, file), "utf8"))
    })
    expect(wrong).toEqual([])
  })
})
