import uPlot from "uplot"
import { addReadout, axis, color, countAxis, draw, hatched } from "./plot.ts"

/** Values in equal steps of time. */
export interface Steps {
  /** When the first step begins, in epoch milliseconds. */
  readonly from: number
  readonly stepMs: number
  /** The values of each series. The highest series comes first. */
  readonly lists: readonly (readonly number[])[]
  /** Returns the values of a step for the line below the plot. */
  readonly describe: (step: number) => string
}

/** The series of a plot. */
export type StepSeries = Pick<uPlot.Options, "series" | "bands">

/** Two series: all requests, and those of them that are admitted. The requests in between are hatched. */
export function stackedSeries(): StepSeries {
  return {
    series: [
      {},
      { ...line("refused"), label: "all" },
      { ...line("admitted"), fill: () => color("admitted-fill"), label: "admitted" },
    ],
    bands: [{ series: [1, 2], fill: hatched }],
  }
}

/** One series: the refused requests. */
export function refusedSeries(): StepSeries {
  return { series: [{}, { ...line("refused"), fill: hatched, label: "refused" }] }
}

function line(name: string): uPlot.Series {
  const paths = uPlot.paths.stepped?.({ align: 1 })
  return { stroke: () => color(name), width: 1.25, points: { show: false }, ...(paths && { paths }) }
}

/** Draws values over time, and the values under the pointer below. Returns a function that draws other values. */
export function drawSteps(
  target: HTMLElement,
  label: string,
  series: StepSeries,
  first: Steps,
): (next: Steps) => void {
  let shown = first
  const readout = addReadout(target)
  const at = (step: number): string => `${time(shown.from + step * shown.stepMs)}: ${shown.describe(step)}`
  const show = (plot: uPlot): void => {
    const [highest = []] = shown.lists
    const top = highest.reduce((best, value, i, all) => (value > (all[best] ?? 0) ? i : best), 0)
    const { idx } = plot.cursor
    const most = `Most at ${at(top)}`
    readout.data = typeof idx === "number" ? at(Math.min(idx, highest.length - 1)) : most
    plot.ctx.canvas.setAttribute("aria-label", `${label}. ${most}. The table below contains all values.`)
  }
  const plot = draw(
    target,
    label,
    {
      ...series,
      ms: 1,
      tzDate: (atMs) => uPlot.tzDate(new Date(atMs), "Etc/UTC"),
      padding: [10, 24, 0, 0],
      scales: { y: { range: (_plot, _min, max) => [0, Math.max(max, 1) * 1.05] } },
      axes: [axis({ values: timeLabels, space: 64, gap: 4, size: 42 }), countAxis()],
      cursor: { sync: { key: "time" }, y: false, points: { show: false } },
      hooks: { setCursor: [show] },
    },
    dataOf(first),
  )
  show(plot)
  return (next) => {
    shown = next
    plot.setData(dataOf(next))
    show(plot)
  }
}

function dataOf({ from, stepMs, lists }: Steps): uPlot.AlignedData {
  const steps = lists[0]?.length ?? 0
  // Each list ends with a copy of its last value, because the last step also has a width.
  const times = Array.from({ length: steps + 1 }, (_, i) => from + i * stepMs)
  return [times, ...lists.map((list) => [...list, list.at(-1) ?? 0])]
}

/** Returns a time in UTC to the second, such as "2026-01-31 14:05:09". */
function time(atMs: number): string {
  return new Date(atMs).toISOString().slice(0, 19).replace("T", " ")
}

/** Labels times in UTC. The date is below the first time of each day. */
const timeLabels: uPlot.Axis.DynamicValues = (_plot, splits, _axis, _space, increment) => {
  let shownDate = ""
  return splits.map((atMs) => {
    const text = time(atMs)
    const date = text.slice(0, 10)
    const isNew = date !== shownDate
    shownDate = date
    if (increment >= 86_400_000) return date.slice(5)
    const clock = increment < 60_000 ? text.slice(11) : text.slice(11, 16)
    return isNew ? `${clock}\n${date}` : clock
  })
}
