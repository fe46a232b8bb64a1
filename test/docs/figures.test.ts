import { readFileSync } from "node:fs"
import { expect, it } from "vitest"
import { ROOT } from "./documents.ts"

const page = readFileSync(`${ROOT}docs/reference/figures.md`, "utf8")

/** Returns the cells of each row of the table below a heading. */
function rowsBelow(heading: RegExp): string[][] {
  const section = page.split(/^## /m).find((part) => heading.test(part)) ?? ""
  const rows = section.match(/^\| .* \|$/gm) ?? []
  return rows.slice(2).map((row) =>
    row
      .split("|")
      .slice(1, -1)
      .map((cell) => cell.trim()),
  )
}

it("docs/reference/figures.md counts the goals that were missed, and says how often", () => {
  const [, count] = /^## Missed: (\d+)$/m.exec(page) ?? []
  const missed = rowsBelow(/^Missed/)
  expect(missed).toHaveLength(Number(count))
  for (const cells of missed) expect(cells.filter((cell) => cell !== "")).toHaveLength(4)
})

it("docs/reference/figures.md shows a goal and a figure in each row of the goals that were met", () => {
  const met = rowsBelow(/^Goals met/)
  expect(met.length).toBeGreaterThan(5)
  for (const cells of met) expect(cells.filter((cell) => cell !== "")).toHaveLength(3)
})
