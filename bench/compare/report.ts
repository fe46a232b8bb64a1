import { median, pairedRatios, percentile } from "../report/statistics.ts"
import { printTable, printWanted } from "../report/table.ts"
import type { Figures } from "./measure.ts"
import { OF_REDIS } from "./measurements.ts"

/** The figures of both builds from one round. */
export interface Round {
  readonly before: Figures
  readonly now: Figures
}

/** CPU microseconds per request in each round, and the ratios of this tree's figures to the commit's figures. */
export interface Compared {
  readonly name: string
  readonly before: readonly number[]
  readonly now: readonly number[]
  readonly median: number
  readonly p10: number
  readonly p90: number
}

/** The largest ratio that is not a regression. */
const MOST_TIMES = 1.05

/** Compares the figures of both builds within each round. */
export function compareFigures(rounds: readonly Round[]): readonly Compared[] {
  return [...(rounds[0]?.now.keys() ?? [])].map((name) => {
    const figuresOf = (build: keyof Round) => rounds.map((round) => round[build].get(name) ?? Number.NaN)
    const before = figuresOf("before")
    const now = figuresOf("now")
    const ratios = pairedRatios(now, before)
    return {
      name,
      before,
      now,
      median: median(ratios),
      p10: percentile(ratios, 0.1),
      p90: percentile(ratios, 0.9),
    }
  })
}

/** Prints the ratios, and whether each one stays within the bound. */
export function printComparison(comparison: readonly Compared[], commit: string): void {
  const rounds = comparison[0]?.now.length ?? 0
  printTable(
    `CPU time of a request (user and system) in ${rounds} rounds; a ratio above 1: this tree uses more`,
    ["", `${commit} us`, "this tree us", "ratio", "10th pct.", "90th pct."],
    comparison.map(({ name, before, now, median: ratio, p10, p90 }) => [
      name,
      ...[median(before), median(now)].map((us) => us.toFixed(2)),
      ...[ratio, p10, p90].map((times) => times.toFixed(3)),
    ]),
  )
  console.log()
  for (const { name, median: ratio } of comparison) {
    // Figures of the Redis server have no bound. The figures show the effect of changes to a script.
    if (name.endsWith(OF_REDIS)) continue
    printWanted(`${name}, times ${commit}`, ratio, ratio <= MOST_TIMES, `at most ${MOST_TIMES}`)
  }
}
