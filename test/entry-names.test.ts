import { readFileSync } from "node:fs"
import { describe, expect, it } from "vitest"

/** Returns the names that an entry point of the core exports, types included. */
function namesOf(entry: string): string[] {
  const text = readFileSync(new URL(`../packages/core/src/${entry}.ts`, import.meta.url), "utf8")
  const code = text.replace(/\/\*.*?\*\//gs, "")
  // `export *` would hide names from this count, and from readers.
  expect(code).not.toMatch(/export (?:\*|const|function|class|default)/)
  const lists = [...code.matchAll(/^export (?:type )?\{([^}]*)\}/gm)].map(([, list = ""]) => list)
  return lists.flatMap((list) => list.split(",").map((name) => name.trim())).filter((name) => name !== "")
}

// Names are what users must learn and what cannot change after a release. Lower a number with each step.
describe.each([
  ["index", 185],
  ["kit", 60],
  ["replay", 7],
])("the entry point %s of @sluice/core", (entry, most) => {
  it(`has at most ${most} names`, () => {
    expect(namesOf(entry).length).toBeLessThanOrEqual(most)
  })
})
