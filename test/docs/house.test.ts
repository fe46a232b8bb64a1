import { existsSync, readdirSync, readFileSync } from "node:fs"
import { describe, expect, it } from "vitest"
import type { Block } from "./blocks.ts"
import { ROOT } from "./documents.ts"
import { blocksTestedBy } from "./shown.ts"

const [house, arrows] = blocksTestedBy("test/docs/house.test.ts", "ARCHITECTURE.md", 2) as [Block, Block]
const packages = readdirSync(`${ROOT}packages`)

/** Returns the names of the files and folders below a folder, except dependencies and build results. */
function namesBelow(folder: string): string[] {
  return readdirSync(ROOT + folder, { withFileTypes: true }).flatMap((entry) => {
    if (["node_modules", "dist", "coverage"].includes(entry.name)) return []
    return entry.isDirectory() ? [`${entry.name}/`, ...namesBelow(`${folder}/${entry.name}`)] : [entry.name]
  })
}

it("ARCHITECTURE.md names only folders and files that exist", () => {
  const there = new Set(
    ["packages", "pages", "examples", "test", "bench", "docs", "deploy"].flatMap((folder) => [
      `${folder}/`,
      ...namesBelow(folder),
    ]),
  )
  const named = house.text.match(/[\w./-]+(?:\/|\.ts)(?=[\s,)]|$)/gm) ?? []
  expect(named.length).toBeGreaterThan(30)
  const missing = named.filter((path) => !path.split(/(?<=\/)/).every((part) => there.has(part)))
  expect(missing).toEqual([])
})

it("ARCHITECTURE.md lists every package and every folder of the core", () => {
  for (const name of packages) expect(house.text, name).toMatch(new RegExp(`\\b${name}/`))
  const rooms = readdirSync(`${ROOT}packages/core/src`, { withFileTypes: true }).filter((entry) =>
    entry.isDirectory(),
  )
  expect(rooms.length).toBeGreaterThan(5)
  for (const { name } of rooms) expect(house.text, name).toContain(`${name}/`)
})

it("ARCHITECTURE.md lists every entry point of the core", () => {
  const files = readdirSync(`${ROOT}packages/core/src`).filter((name) => /^\w+\.ts$/.test(name))
  expect(files.length).toBeGreaterThan(1)
  for (const name of files) expect(house.text, name).toContain(name)
})

it("ARCHITECTURE.md names only existing files and folders as the place for a change", () => {
  const page = readFileSync(`${ROOT}ARCHITECTURE.md`, "utf8")
  const rows = page.slice(page.indexOf("## Where to put what")).match(/^\| .+ \|$/gm) ?? []
  const paths = rows.flatMap((row) =>
    [...row.matchAll(/`([\w./-]+(?:\/|\.ts))`/g)].map(([, path = ""]) => path),
  )
  expect(paths.length).toBeGreaterThan(40)
  const folders = ["", "packages/core/src/", "packages/scale/src/", "packages/otel/src/"]
  const missing = paths.filter((path) => !folders.some((folder) => existsSync(ROOT + folder + path)))
  expect(missing).toEqual([])
})

it("ARCHITECTURE.md draws arrows only between folders that exist", () => {
  const rooms =
    arrows.text.match(/[a-z]+/g)?.filter((word) => !["core", "door", "adapters"].includes(word)) ?? []
  expect(rooms.length).toBeGreaterThan(5)
  for (const name of rooms) {
    const isThere = packages.includes(name) || existsSync(`${ROOT}packages/core/src/${name}`)
    expect([name, isThere]).toEqual([name, true])
  }
})

describe("CONTRIBUTING.md lists the files and lines needed to add", () => {
  const contributing = readFileSync(`${ROOT}CONTRIBUTING.md`, "utf8")
  const [table = ""] = /\n\| to add (?:.*\n)+?(?=\n)/.exec(contributing) ?? []
  const rows = table.trim().split("\n").slice(2)
  const cells = rows.map((row) => row.split("|").slice(1, -1)) as [string, string, string, string, string][]

  /** Returns the paths that a cell names, from the root. */
  const pathsIn = (cell: string): string[] =>
    [...cell.matchAll(/`([^`]+)`/g)].map(([, path = ""]) =>
      /^(examples|packages|test)\//.test(path) ? path : `packages/core/src/${path}`,
    )
  const linesOf = (path: string): number => readFileSync(ROOT + path, "utf8").split("\n").length - 1

  it("a part of each kind", () => {
    expect(cells).toHaveLength(6)
  })

  it.each(cells)("%s", (_what, read, change, smallest, suites) => {
    const missing = [read, change, smallest, suites]
      .flatMap(pathsIn)
      .filter((path) => !existsSync(ROOT + path))
    expect(missing).toEqual([])
    const changed = [...(change.includes("those") ? pathsIn(read) : []), ...pathsIn(change)]
    const counted = [pathsIn(read), changed, pathsIn(suites)].map(({ length }) => length)
    expect([read, change, suites].map((cell) => Number.parseInt(cell, 10))).toEqual(counted)
    expect(pathsIn(smallest).map(linesOf)).toEqual([Number.parseInt(smallest, 10)])
  })
})
