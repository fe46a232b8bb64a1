import { readFileSync } from "node:fs"
import { describe, expect, it } from "vitest"
import { type BarFigure, type Figure, goalOf, misses, readFigures } from "../../bench/figures/figures.ts"
import { ROOT } from "./documents.ts"

const page = readFileSync(`${ROOT}docs/reference/figures.md`, "utf8")
const { runs, costs, missed, charts } = readFigures()
const all: readonly Figure[] = [...costs, ...missed, ...Object.values(charts).flat()]

/** Returns the cells of each row of the table below a heading. */
function rowsBelow(heading: string): string[][] {
  const section = page.split(/^#+ /m).find((part) => part.startsWith(`${heading}\n`)) ?? ""
  const rows = section.match(/^\| .* \|$/gm) ?? []
  return rows.slice(2).map((row) =>
    row
      .split("|")
      .slice(1, -1)
      .map((cell) => cell.trim()),
  )
}

/** Returns the numbers in a text: 0.7 and 0.95 for "0.7–0.95 million". */
function numbersIn(text: string): number[] {
  return (text.replace(/\]\([^)]*\)/g, "").match(/\d[\d,]*(\.\d+)?/g) ?? []).map((number) =>
    Number(number.replaceAll(",", "")),
  )
}

/** Returns the numbers that a page shows for a figure: one number, or the ends of a range. */
function numbersOf({ least, most }: Figure): number[] {
  return least === most ? [least] : [least, most]
}

describe("docs/reference/figures.md", () => {
  it("contains a row with the numbers of each cost in bench/figures.json", () => {
    const rows = rowsBelow("Figures").map(([row = "", cost = ""]) => [row, numbersIn(cost)])
    const expected = [...new Set(costs.map(({ row }) => row))].map((name) => [
      name,
      costs.filter(({ row }) => row === name).flatMap(numbersOf),
    ])
    expect(rows).toEqual(expected)
  })

  it("contains a row with the numbers of each missed goal in bench/figures.json", () => {
    const rows = rowsBelow(`Missed: ${missed.length}`).map(([row, goal = "", figure = "", often]) => [
      row,
      goal.slice(0, 1),
      numbersIn(goal),
      numbersIn(figure),
      often,
    ])
    expect(rows).toEqual(
      missed.map((figure) => [
        figure.row,
        figure.goal?.is,
        [figure.goal?.value],
        numbersOf(figure),
        figure.missed,
      ]),
    )
  })

  it("contains at most 850 words", () => {
    expect(page.split(/\s+/).filter((word) => word !== "").length).toBeLessThanOrEqual(850)
  })
})

describe("bench/figures.json", () => {
  it("names a run for each figure, and a figure for each run", () => {
    expect(new Set(all.map(({ run }) => run))).toEqual(new Set(Object.keys(runs)))
  })

  it.each(Object.entries(runs))("states the command, machine, day and commit of the run %s", (_name, run) => {
    const [script = ""] = run.command.split(" ")
    const { scripts } = JSON.parse(readFileSync(`${ROOT}package.json`, "utf8"))
    expect(Object.keys(scripts)).toContain(script)
    expect(run.machine).toMatch(/cores/)
    expect(run.date).toMatch(/^20\d\d-\d\d-\d\d$/)
    expect(run.commit).toMatch(/^[\da-f]{8}$/)
  })

  it("states for each row with a goal whether the goal was missed", () => {
    for (const figure of [...costs, ...missed]) {
      const isMissed = figure.goal !== undefined && misses(figure, figure.goal.is, figure.goal.value)
      expect([figure.row, figure.missed !== undefined]).toEqual([figure.row, isMissed])
    }
  })

  it.each(Object.entries(charts))(
    "states for each bar of the chart %s whether its goal was missed",
    (_chart, bars) => {
      for (const bar of bars) {
        const goal = goalOf(bar, bars)
        const isMissed = bar.goal !== undefined && goal !== undefined && misses(bar, bar.goal.is, goal)
        expect([bar.group, bar.name, bar.missed !== undefined]).toEqual([bar.group, bar.name, isMissed])
        expect(bar.least).toBeLessThanOrEqual(bar.most)
      }
    },
  )

  it("contains the shares of refused requests that follow from the counts of refused and sent requests", () => {
    for (const { name, group, least, refused, sent } of charts.refused as readonly (BarFigure & {
      readonly refused: number
      readonly sent: number
    })[])
      expect([group, name, least]).toEqual([group, name, Math.round((1_000 * refused) / sent) / 10])
  })
})
