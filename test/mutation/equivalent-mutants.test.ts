import { existsSync, readFileSync } from "node:fs"
import type { Mutant } from "@stryker-mutator/api/core"
import { expect, it } from "vitest"
import { EQUIVALENT_LINES, isEquivalent, staleLines } from "./equivalent-mutants.ts"

it("EQUIVALENT_LINES names only lines that exist in the sources", () => {
  const read = (path: string) => (existsSync(path) ? readFileSync(path, "utf8") : undefined)
  expect(staleLines(EQUIVALENT_LINES, read)).toEqual([])
})

it("staleLines returns a listed line that no longer exists", () => {
  const listed = (path: string, line: string) => ({ path, line, mutators: ["all"] })
  const lines = [listed("a.ts", "if (a) return"), listed("a.ts", "if (b) return"), listed("b.ts", "b")]
  const read = (path: string) => (path === "a.ts" ? "\n  if (a) return\n" : undefined)
  expect(staleLines(lines, read)).toEqual(["a.ts: no line is if (b) return", "b.ts: the file does not exist"])
})

it("isEquivalent returns true only for a listed mutator on a listed line of a listed file", () => {
  const listed = EQUIVALENT_LINES.find(({ mutators }) => mutators[0] !== "all")
  if (listed === undefined) throw new Error("no line is listed")
  const { path, line, mutators } = listed
  const mutant = (mutatorName = "", at = 1) =>
    ({ mutatorName, location: { start: { line: at, column: 4 }, end: { line: at, column: 5 } } }) as Mutant
  const text = `\n    ${line}\n`
  expect(isEquivalent(mutant(mutators[0]), path, text)).toBe(true)
  expect(isEquivalent(mutant("BlockStatement!"), path, text)).toBe(false)
  expect(isEquivalent(mutant(mutators[0], 0), path, text)).toBe(false)
  expect(isEquivalent(mutant(mutators[0]), `${path}x`, text)).toBe(false)
})
