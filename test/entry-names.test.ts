import { readFileSync } from "node:fs"
import { describe, expect, it } from "vitest"

/** Returns the names that an entry point of the core exports, including types. */
function namesOf(entry: string): string[] {
  const text = readFileSync(new URL(`../packages/core/src/${entry}.ts`, import.meta.url), "utf8")
  const code = text.replace(/\/\*.*?\*\//gs, "")
  // `export *` would hide names from this count, and from readers.
  expect(code).not.toMatch(/export (?:\*|const|function|class|default)/)
  const lists = [...code.matchAll(/^export (?:type )?\{([^}]*)\}/gm)].map(([, list = ""]) => list)
  return lists.flatMap((list) => list.split(",").map((name) => name.trim())).filter((name) => name !== "")
}

/** The entry points of the core, each with the maximum number of exported names. */
const MOST = [
  ["index", 58],
  ["stores", 60],
  ["adapters", 58],
  ["kit", 29],
  ["rules", 45],
  ["replay", 6],
  ["testing", 4],
] as const

// Users must learn these names, and the names cannot change after a release. Lower a number whenever its entry point
// exports fewer names.
describe.each(MOST)("the entry point %s of @sluice/core", (entry, most) => {
  it(`has at most ${most} names`, () => {
    expect(namesOf(entry).length).toBeLessThanOrEqual(most)
  })
})

describe("the entry points of @sluice/core", () => {
  it("are all listed in this test", () => {
    const { exports } = JSON.parse(
      readFileSync(new URL("../packages/core/package.json", import.meta.url), "utf8"),
    )
    const paths = Object.keys(exports).filter((path) => !path.endsWith(".json"))
    expect(paths).toEqual(MOST.map(([entry]) => (entry === "index" ? "." : `./${entry}`)))
  })

  it("export each name from only one entry point", () => {
    const names = MOST.flatMap(([entry]) => namesOf(entry)).map((name) => name.replace(/^type /, ""))
    expect(names.filter((name, at) => names.indexOf(name) !== at)).toEqual([])
  })
})
