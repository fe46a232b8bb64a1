import { type BarFigure, type ChartName, goalOf, readFigures } from "../../bench/figures/figures.ts"
import { BAR_STYLE, type Bar, type BarGroup, drawBars, heightOf, type Scale } from "./bars.ts"
import { type Diagram, diagram } from "./diagram.ts"

/** How a chart shows its figures. */
interface Chart extends Pick<Scale, "title" | "note"> {
  readonly file: string
  /** The distance between two labels of the axis, or their ratio if the axis is logarithmic. */
  readonly step: number
  readonly isLogarithmic?: boolean
  readonly description: (bars: readonly BarFigure[]) => string
  /** Returns a value in words, in the unit that suits `most`. */
  readonly words: (value: number, most?: number) => string
}

const CHARTS: Readonly<Record<ChartName, Chart>> = {
  share: {
    file: "figures-share.svg",
    title: "Requests per second, as a share of the app without a limiter",
    note: "Solid: the lowest run. Pale: up to the highest. Red: runs missed the goal.",
    step: 0.5,
    words: (value) => value.toFixed(2),
    description: (bars) => {
      const ours = ["Express, admits", "Koa, admits", "Fastify, admits", "Fastify on Redis"].map((group) => {
        const { least, most } = find(bars, group, "Sluice")
        return `${group.replace(", admits", "")} ${range(least, most, (value) => value.toFixed(2))}`
      })
      return `The share of requests per second that remains with Sluice: ${ours.join(", ")}. ${missedIn(bars)}`
    },
  },
  throughput: {
    file: "figures-throughput.svg",
    title: "Thousand decisions per second through one Redis, by requests in flight",
    note: "Blue: Sluice. Gray: other limiters. Red: the goal was missed.",
    step: 100_000,
    words: (value) => `${Math.round(value / 1_000)}`,
    description: (bars) => {
      const inThousands = (group: string, name: string): number =>
        Math.round(find(bars, group, name).least / 1_000)
      const pair = (group: string): readonly number[] =>
        ["Sluice, decide", "rate-limiter-flexible"].map((name) => inThousands(group, name))
      const [[one, peersOne], [many, peersMany]] = [pair("1 in flight"), pair("256 in flight")] as [
        number[],
        number[],
      ]
      return (
        `Thousand decisions per second through Redis. With 1 in flight, ${one} with Sluice and ${peersOne} with ` +
        `rate-limiter-flexible. With 256 in flight, ${many} and ${peersMany}. ${missedIn(bars)}`
      )
    },
  },
  latency: {
    file: "figures-latency.svg",
    title: "Duration of a decision through one Redis, by requests in flight",
    note: "Solid: the shortest round. Pale: up to the longest. Each line is ten times the one before.",
    step: 10,
    isLogarithmic: true,
    words: time,
    description: (bars) => {
      const pair = (group: string): string[] =>
        ["Sluice, decide", "rate-limiter-flexible"]
          .map((name) => find(bars, group, name))
          .map(({ least, most }) => range(least, most, String))
      const [one, peersOne] = pair("1 in flight, p50")
      const [many, late] = ["p50", "p99"].map((part) => pair(`256 in flight, ${part}`).join(" and "))
      return (
        `Milliseconds of a decision through Redis. With 1 in flight, p50 is ${one} with Sluice and ${peersOne} with ` +
        `rate-limiter-flexible. With 256 in flight, p50 is ${many}, and p99 ${late}.`
      )
    },
  },
  outage: {
    file: "figures-outage.svg",
    title: "Duration of a decision while Redis is frozen, 64 in flight",
    note: "Open: with an open circuit breaker. Red: missed. Each line is 100 times the one before.",
    step: 100,
    isLogarithmic: true,
    words: time,
    description: (bars) => {
      const [longest, , p50, , p999] = bars.map(({ least, most }) => range(least, most, time))
      return (
        `While Redis is frozen, the longest decision takes ${longest}. ` +
        `With an open circuit breaker, p50 is ${p50} and p99.9 ${p999}. ${missedIn(bars)}`
      )
    },
  },
  memory: {
    file: "figures-memory.svg",
    title: "Bytes per client in the memory of a process",
    note: "Blue: Sluice. Gray: other limiters.",
    step: 200,
    words: (value) => `${value}`,
    description: (bars) => {
      const [ours, ...peers] = bars
      const list = peers.map(({ name, least }) => `${name} ${least}`).join(", ")
      return `Bytes for each of a million clients in memory: Sluice ${ours?.least}, ${list}.`
    },
  },
  refused: {
    file: "figures-refused.svg",
    title: "Refused requests of a client, in percent of those that it sent",
    note: "Each client sends 600 calls to an API with the limit on the left.",
    step: 25,
    words: (value) => `${value}`,
    description: (bars) => {
      const others = bars.filter(({ name }) => name !== "@sluice/client").map(({ least }) => least)
      const ours = bars.filter(({ name }) => name === "@sluice/client").map(({ most }) => most)
      return (
        `The server refuses ${Math.max(...ours)} % of the requests of @sluice/client under each of four limits, and ` +
        `${Math.min(...others)}–${Math.max(...others)} % of those of axios-retry, undici RetryAgent and Bottleneck.`
      )
    },
  },
}

/** Draws the charts of docs/reference/figures.md from bench/figures.json. */
export function drawFigures(): readonly Diagram[] {
  const { charts } = readFigures()
  return (Object.keys(CHARTS) as ChartName[]).map((name) => drawChart(CHARTS[name], charts[name]))
}

function drawChart(chart: Chart, figures: readonly BarFigure[]): Diagram {
  const groups = [...new Set(figures.map(({ group }) => group))].map(
    (name): BarGroup => ({
      name,
      bars: figures.filter(({ group }) => group === name).map((figure) => barOf(figure, figures, chart)),
    }),
  )
  const longest = Math.max(...figures.flatMap((figure) => [figure.most, goalOf(figure, figures) ?? 0]))
  const { step, isLogarithmic = false, words } = chart
  const shortest = Math.min(...figures.map(({ least }) => least))
  const most = (isLogarithmic ? 2 : 1.02) * longest
  const least = isLogarithmic ? 10 ** Math.floor(Math.log10(shortest)) : 0
  const steps = isLogarithmic ? Math.log(most / least) / Math.log(step) : most / step
  const ticks = Array.from({ length: Math.floor(steps) + 1 }, (_, at): readonly [number, string] => {
    const value = isLogarithmic ? least * step ** at : at * step
    return [value, words(value)]
  })
  const scale = { ...chart, ...(isLogarithmic && { least }), most, ticks }
  return diagram(
    chart.file,
    { title: chart.title, description: chart.description(figures), height: heightOf(groups) },
    drawBars(groups, scale),
    BAR_STYLE,
  )
}

function barOf(figure: BarFigure, figures: readonly BarFigure[], { words }: Chart): Bar {
  const { name, least, most, goal, missed } = figure
  const value = goalOf(figure, figures)
  const isOurs = /sluice/i.test(name)
  return {
    name,
    least,
    most,
    words: range(least, most, words),
    look: missed !== undefined ? "refused" : isOurs ? "ours" : "others",
    ...(goal !== undefined &&
      value !== undefined && { goal: { value, words: `${goal.is} ${words(value)}` } }),
  }
}

/** Returns a sentence with the groups of the bars that missed a goal. */
function missedIn(bars: readonly BarFigure[]): string {
  const groups = bars.filter(({ missed }) => missed !== undefined).map(({ group }) => group)
  return groups.length === 0 ? "All goals were met." : `Goals missed: ${groups.join("; ")}.`
}

/** Returns a value in words, or both ends of a range in the same unit. */
function range(least: number, most: number, words: Chart["words"]): string {
  return words(least) === words(most)
    ? words(most)
    : `${words(least, most).replace(/ .*/, "")}–${words(most)}`
}

/** Returns a time in milliseconds in words. The unit is microseconds if `most` is shorter than a millisecond. */
function time(ms: number, most = ms): string {
  const [value, unit] = Number(most.toPrecision(3)) < 1 ? [1_000 * ms, "µs"] : [ms, "ms"]
  return `${value < 100 ? Number(value.toPrecision(2)) : Math.round(value)} ${unit}`
}

function find(bars: readonly BarFigure[], group: string, name: string): BarFigure {
  return bars.find((bar) => bar.group === group && bar.name === name) as BarFigure
}
