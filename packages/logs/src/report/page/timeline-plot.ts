import uPlot from "uplot"
import { count, percent } from "../../quantities.ts"
import { time } from "../format.ts"
import type { PageData } from "../page-data.ts"
import { addReadout, axis, color, countAxis, draw, hatched } from "./plot.ts"

type TimelineSteps = PageData["timeline"]

/** Draws the requests that all rules together admitted and refused, on top of each other. */
export function drawRequests(target: HTMLElement, timeline: TimelineSteps): void {
  const { admitted, refused } = timeline
  const all = admitted.map((requests, i) => requests + (refused[i] ?? 0))
  const describe = (i: number): string =>
    `${count(admitted[i] ?? 0)} admitted, ${count(refused[i] ?? 0)} refused (${percent(refused[i] ?? 0, all[i] ?? 0)})`
  drawSteps(target, "Requests admitted and refused over time", timeline, [all, admitted], describe, {
    series: [
      {},
      { ...line("refused"), label: "all" },
      { ...line("admitted"), fill: () => color("admitted-fill"), label: "admitted" },
    ],
    bands: [{ series: [1, 2], fill: hatched }],
  })
}

/** Draws the requests that one rule refused. */
export function drawRefused(
  target: HTMLElement,
  timeline: TimelineSteps,
  rule: PageData["rules"][number],
): void {
  const describe = (i: number): string => `${count(rule.refused[i] ?? 0)} refused`
  drawSteps(target, `Requests that ${rule.name} refused over time`, timeline, [rule.refused], describe, {
    series: [{}, { ...line("refused"), fill: hatched, label: "refused" }],
  })
}

function line(name: string): uPlot.Series {
  const paths = uPlot.paths.stepped?.({ align: 1 })
  return { stroke: () => color(name), width: 1.25, points: { show: false }, ...(paths && { paths }) }
}

function drawSteps(
  target: HTMLElement,
  label: string,
  { from, stepMs }: TimelineSteps,
  lists: readonly (readonly number[])[],
  describe: (step: number) => string,
  options: Pick<uPlot.Options, "series" | "bands">,
): void {
  const steps = lists[0]?.length ?? 0
  // Each list ends with a copy of its last value, because the last step also has a width.
  const times = Array.from({ length: steps + 1 }, (_, i) => from + i * stepMs)
  const values = lists.map((list) => [...list, list.at(-1) ?? 0])
  const highest = (lists[0] ?? []).reduce((best, value, i, all) => (value > (all[best] ?? 0) ? i : best), 0)
  const busiest = `Most at ${time(from + highest * stepMs)}: ${describe(highest)}`
  const readout = addReadout(target)
  readout.data = busiest
  draw(
    target,
    `${label}. ${busiest}. The table below contains all values.`,
    {
      ...options,
      ms: 1,
      tzDate: (atMs) => uPlot.tzDate(new Date(atMs), "Etc/UTC"),
      padding: [10, 24, 0, 0],
      scales: { y: { range: (_plot, _min, max) => [0, Math.max(max, 1) * 1.05] } },
      axes: [axis({ values: timeLabels, space: 64, gap: 4, size: 42 }), countAxis()],
      cursor: { sync: { key: "time" }, y: false, points: { show: false } },
      hooks: {
        setCursor: [
          ({ cursor: { idx } }) => {
            const step = typeof idx === "number" ? Math.min(idx, steps - 1) : undefined
            readout.data = step === undefined ? busiest : `${time(from + step * stepMs)}: ${describe(step)}`
          },
        ],
      },
    },
    [times, ...values],
  )
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
