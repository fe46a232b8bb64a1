import { median } from "../report/statistics.ts"
import { printTable } from "../report/table.ts"

/** A figure of the plan that a simulation reproduces. */
export interface Cell {
  /** Name of the simulated case. */
  readonly name: string
  readonly figure: string
  readonly planned: number
  readonly run: number
}

/** A cell agrees if its result differs from the plan by at most this share. */
const TOLERANCE = 0.05

/**
 * Returns the share by which the run exceeds the plan. The share is negative if the run is below the plan. For a
 * result of 1.05 and a plan of 1, it is 0.05.
 */
export function differenceOf({ planned, run }: Cell): number {
  return run / planned - 1
}

/** Whether the run agrees with the plan within 5 %. */
export function agrees(cell: Cell): boolean {
  return Math.abs(differenceOf(cell)) <= TOLERANCE
}

/** Returns the cells with the medians of several runs. Each run contains the same cells. */
export function medianOf(runs: readonly (readonly Cell[])[]): readonly Cell[] {
  const [first = []] = runs
  return first.map((cell, i) => ({ ...cell, run: median(runs.map((cells) => cells[i]?.run as number)) }))
}

/** Prints the cells, and marks the cells that agree with the plan. */
export function printCells(title: string, cells: readonly Cell[]): void {
  printTable(
    title,
    ["cell", "figure", "planned", "this run", "difference", "within 5 %"],
    cells.map((cell) => {
      const percent = 100 * differenceOf(cell)
      return [
        cell.name,
        cell.figure,
        `${cell.planned}`,
        cell.run.toPrecision(4),
        `${percent < 0 ? "" : "+"}${percent.toFixed(1)} %`,
        agrees(cell) ? "yes" : "NO",
      ]
    }),
  )
}
