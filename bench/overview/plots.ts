import { parse, View } from "vega"
import { compile, type TopLevelSpec } from "vega-lite"
import type { Measurement, Part, Quantity } from "./measurement.ts"
import { whereOf } from "./print.ts"

/** A picture and its title. */
export interface Plot {
  readonly title: string
  /** SVG. */
  readonly picture: string
}

/**
 * A bar chart of a quantity, with a small picture for each workload and a bar for each contender. A bar also shows
 * the minimum and the maximum of its rounds.
 */
interface Wanted {
  readonly title: string
  readonly part: Part
  readonly quantity: Quantity
}

const BARS: readonly Wanted[] = [
  { title: "Throughput in process", part: "in-process", quantity: "decisions a second" },
  { title: "Throughput through Redis", part: "redis", quantity: "decisions a second" },
  { title: "Latency through Redis", part: "redis", quantity: "p99 ms" },
  { title: "CPU of Node through Redis", part: "redis", quantity: "Node CPU us" },
  { title: "CPU of Redis", part: "redis", quantity: "Redis CPU us" },
  { title: "Throughput over HTTP", part: "http", quantity: "requests a second" },
  { title: "Latency over HTTP", part: "http", quantity: "p99 ms" },
  { title: "Memory", part: "memory", quantity: "bytes a client" },
  {
    title: "The worst case, with a mark at the guaranteed bound",
    part: "bound",
    quantity: "most admitted in any window, times the limit",
  },
]
const OURS = "#0969da"
const THEIRS = "#8c959f"
const MARK = "#cf222e"
const COLUMNS = 3
/** The maximum width of a label, in pixels. */
const LONGEST_LABEL = 300
const POISSON = "poisson "

/** Draws a picture for each quantity that was measured, in order. */
export async function drawPlots(measurements: readonly Measurement[]): Promise<readonly Plot[]> {
  const plots: Plot[] = []
  for (const { title, part, quantity } of BARS) {
    const shown = measurements.filter((one) => one.part === part && one.quantity === quantity)
    if (shown.length > 0) plots.push({ title, picture: await draw(bars(shown, quantity)) })
  }
  const shares = measurements.filter((one) => one.part === "accuracy" && one.workload.startsWith(POISSON))
  if (shares.length > 0)
    plots.push({ title: "Accuracy under Poisson traffic", picture: await draw(lines(shares)) })
  return plots
}

function bars(measurements: readonly Measurement[], quantity: Quantity): TopLevelSpec {
  const y = { field: "contender", type: "nominal", sort: null, title: null } as const
  const places = [...new Set(measurements.map(whereOf))]
  return {
    columns: COLUMNS,
    concat: places.map((place) => ({
      title: place,
      width: 220,
      data: { values: measurements.filter((one) => whereOf(one) === place) },
      layer: [
        {
          mark: { type: "bar" },
          encoding: {
            y,
            x: { field: "median", type: "quantitative", title: quantity },
            color: { condition: { test: "datum.isOurs", value: OURS }, value: THEIRS },
          },
        },
        {
          mark: { type: "rule" },
          encoding: { y, x: { field: "least", type: "quantitative" }, x2: { field: "most" } },
        },
        {
          transform: [{ filter: "isValid(datum.promised)" }],
          mark: { type: "tick", color: MARK, thickness: 3 },
          encoding: { y, x: { field: "promised", type: "quantitative" } },
        },
      ],
    })),
  }
}

function lines(measurements: readonly Measurement[]): TopLevelSpec {
  const values = measurements.map(({ workload, contender, median }) => {
    return { load: Number(workload.slice(POISSON.length)), contender, share: 100 * median }
  })
  return {
    data: { values },
    width: 640,
    height: 300,
    mark: { type: "line", point: true },
    encoding: {
      x: {
        field: "load",
        type: "quantitative",
        scale: { type: "log", domain: [0.4, 12] },
        title: "load, times the limit",
      },
      y: {
        field: "share",
        type: "quantitative",
        scale: { zero: false },
        title: "% of what an exact log admits",
      },
      color: { field: "contender", type: "nominal", sort: null, title: null },
    },
  }
}

function draw(spec: TopLevelSpec): Promise<string> {
  const config = { axis: { labelLimit: LONGEST_LABEL }, legend: { labelLimit: LONGEST_LABEL } }
  return new View(parse(compile({ ...spec, config }).spec), { renderer: "none" }).toSVG()
}
