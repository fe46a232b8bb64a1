import { readFileSync } from "node:fs"

/** The run that produced a figure. */
export interface FiguresRun {
  /** The command that printed it: "bench:http". */
  readonly command: string
  readonly machine: string
  /** The day, as in "2026-11-25". */
  readonly date: string
  /** The measured commit, or the first commit that contained the figure. */
  readonly commit: string
}

/** A bound for a figure: at least, at most, or more than a value. */
export interface Goal {
  readonly is: "≥" | "≤" | ">"
  readonly value: number
  /**
   * The name of a bar in the same group. The goal is then `value` times that bar. Absent if `value` is the goal
   * itself.
   */
  readonly times?: string
}

/**
 * The range of a measured value, from the lowest to the highest of all runs. Both ends are the same if only one value
 * is known.
 */
export interface Figure {
  readonly least: number
  readonly most: number
  readonly unit: string
  readonly goal?: Goal
  /** A description of the runs that missed the goal. Absent if all runs met the goal. */
  readonly missed?: string
  /** The name of the run in `runs`. */
  readonly run: string
}

/**
 * A figure in a table of docs/reference/figures.md. `row` is the first cell of the figure's row. A row may contain
 * several figures.
 */
export interface RowFigure extends Figure {
  readonly row: string
}

/** A bar of a chart. */
export interface BarFigure extends Figure {
  readonly group: string
  readonly name: string
  /** The measurement of `bench` that replaces the figure. Absent if another command measures it. */
  readonly from?: {
    readonly part: string
    readonly workload: string
    readonly inFlight?: number
    readonly contender: string
    readonly quantity: string
  }
}

/** The names of the charts. */
export type ChartName = "share" | "throughput" | "latency" | "outage" | "memory" | "refused"

/** The content of bench/figures.json. */
export interface Figures {
  readonly runs: Readonly<Record<string, FiguresRun>>
  readonly costs: readonly RowFigure[]
  readonly missed: readonly RowFigure[]
  readonly charts: Readonly<Record<ChartName, readonly BarFigure[]>>
}

/** The file that contains the figures. */
export const FIGURES_FILE: URL = new URL("../figures.json", import.meta.url)

/** Reads bench/figures.json. */
export function readFigures(): Figures {
  return JSON.parse(readFileSync(FIGURES_FILE, "utf8"))
}

/** Returns the goal of a bar as a value in its unit, if it has a goal. */
export function goalOf({ goal, group }: BarFigure, bars: readonly BarFigure[]): number | undefined {
  if (goal?.times === undefined) return goal?.value
  const peer = bars.find((bar) => bar.group === group && bar.name === goal.times)
  return peer && goal.value * peer.least
}

/** Whether a figure misses a goal in at least one run. */
export function misses({ least, most }: Figure, is: Goal["is"], value: number): boolean {
  if (is === "≤") return most > value
  return is === "≥" ? least < value : least <= value
}
