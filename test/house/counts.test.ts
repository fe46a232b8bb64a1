import { describe, expect, it } from "vitest"
import { countDocuments, wordsOf } from "./documents.ts"
import { functions, imports, inheritance } from "./lists.ts"
import { DEEP, keyOf, LONG, MANY, REASONED } from "./reasons.ts"
import { codeLines, parse, parseText, sourcePaths, testPaths } from "./sources.ts"

const sources = parse(sourcePaths())

describe("pnpm counts", () => {
  it("has a reason for each long function, deep class and file with many imports, and no other reason", () => {
    const needed = [
      ...functions(sources).filter(({ count }) => count > LONG),
      ...inheritance(sources).filter(({ count }) => count > DEEP),
      ...imports(sources).filter(({ count }) => count > MANY),
    ]
    expect([...new Set(needed.map(({ place }) => keyOf(place)))].sort()).toEqual([...REASONED].sort())
  })

  it("counts the lines of code of a text, without comments and blank lines", () => {
    expect(codeLines('/**\n * A list.\n */\n\nconst list = [\n  "*/", // two\n]\n  // end\n')).toBe(3)
    expect(codeLines("-- KEYS[1] is the counter\nlocal now = 1\n")).toBe(1)
  })

  it("counts the words, pages and pictures of the documents", () => {
    expect(wordsOf("# Two words\n\nand `three` more\n")).toBe(6)
    const counts = new Map(countDocuments())
    expect(counts.get("pages")).toBeGreaterThan(100)
    expect(counts.get("pictures")).toBeGreaterThan(15)
  })

  it("counts every source and every test once", () => {
    const [files, tests] = [sourcePaths(), testPaths()]
    expect(new Set([...files, ...tests]).size).toBe(files.length + tests.length)
    expect(files).toEqual(
      expect.arrayContaining(["packages/redis/src/scripts/take.lua", "packages/core/src/index.ts"]),
    )
    expect(tests).toEqual(expect.arrayContaining(["test/house/main.ts", "test/house/counts.test.ts"]))
  })

  it("finds functions, classes and imports, and counts what belongs to each", () => {
    const source = parseText(
      "a.ts",
      'import "b"\nclass A extends Error {\n  constructor() {\n    super()\n  }\n}\nclass B extends A {}\nconst run = () => {}',
    )
    expect(functions([source])).toEqual([
      { place: "a.ts A.constructor", count: 3 },
      { place: "a.ts run", count: 1 },
    ])
    expect(inheritance([source])).toEqual([
      { place: "a.ts B", count: 2 },
      { place: "a.ts A", count: 1 },
    ])
    expect(imports([source])).toEqual([{ place: "a.ts", count: 1 }])
  })
})
