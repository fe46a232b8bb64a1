import type { Measurement } from "../overview/measurement.ts"
import { type BarFigure, type Figures, type FiguresRun, goalOf, misses } from "./figures.ts"

/**
 * Replaces the bars that `bench` has measured with its measurements, and sets their run. Other figures do not change.
 * Runs without a figure are removed.
 */
export function updateFigures(
  { runs, costs, missed, charts }: Figures,
  measurements: readonly Measurement[],
  run: FiguresRun,
): Figures {
  const name = `${run.command}, ${run.date}`
  const update = (bars: readonly BarFigure[]): readonly BarFigure[] => {
    const measured = bars.map((bar): BarFigure => {
      const found = measurements.find((one) => isOf(one, bar))
      if (found === undefined) return bar
      const { missed: _, ...rest } = bar
      const rounded = (value: number): number =>
        bar.unit === "ms" ? Number(value.toPrecision(2)) : Math.round(value)
      return { ...rest, least: rounded(found.least), most: rounded(found.most), run: name }
    })
    return measured.map((bar) => {
      const value = goalOf(bar, measured)
      if (bar.run !== name || bar.goal === undefined || value === undefined) return bar
      return misses(bar, bar.goal.is, value) ? { ...bar, missed: "this run" } : bar
    })
  }
  const updated = {
    share: update(charts.share),
    throughput: update(charts.throughput),
    latency: update(charts.latency),
    outage: update(charts.outage),
    memory: update(charts.memory),
    refused: update(charts.refused),
  }
  const used = new Set([...costs, ...missed, ...Object.values(updated).flat()].map((figure) => figure.run))
  const named = Object.entries({ ...runs, [name]: run }).filter(([key]) => used.has(key))
  return { runs: Object.fromEntries(named), costs, missed, charts: updated }
}

function isOf(measurement: Measurement, { from }: BarFigure): boolean {
  return (
    measurement.part === from?.part &&
    measurement.workload === from.workload &&
    measurement.inFlight === from.inFlight &&
    measurement.contender === from.contender &&
    measurement.quantity === from.quantity
  )
}
