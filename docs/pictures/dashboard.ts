import { readFileSync } from "node:fs"
import { amountAxis, chartLine, type Times, timeAxis } from "./chart.ts"
import { type Diagram, diagram, MIDDLE } from "./diagram.ts"
import { type Area, type Look, text } from "./draw.ts"

/** A panel of the dashboard, with what Prometheus returns for its query. */
export interface BoardPanel {
  readonly title: string
  /** The values are null where the query returns nothing. */
  readonly series: readonly { readonly name: string; readonly values: readonly (number | null)[] }[]
}

/** The panels of the dashboard over a run. `test/operations/board-run.ts` records it. */
export interface BoardRun {
  /** The time between two values. */
  readonly shownMs: number
  readonly lengthMs: number
  readonly events: readonly { readonly fromMs: number; readonly toMs: number; readonly what: string }[]
  readonly panels: readonly BoardPanel[]
}

const MINUTE_MS = 60_000
const PANEL = { width: 346, height: 184 }
const CHART = { x: 56, y: 52, width: 262, height: 92 }
/** The axis and the colors of each panel. */
const STYLES: Readonly<
  Record<
    string,
    { readonly ticks: readonly number[]; readonly unit: string; readonly looks: readonly Look[] }
  >
> = {
  "Decisions per second, by result": { ticks: [0, 5, 10, 15], unit: "", looks: ["good", "refused"] },
  "Refusals per second, by rule": { ticks: [0, 2, 4, 6], unit: "", looks: ["refused"] },
  "What shadow rules would refuse": { ticks: [0, 20, 40], unit: " %", looks: ["goal"] },
  "Decisions without the shared store": { ticks: [0, 50, 100], unit: " %", looks: ["ours"] },
}

/** Draws four panels of the dashboard. */
export function drawDashboard(): Diagram {
  const run: BoardRun = JSON.parse(readFileSync(new URL("dashboard.json", import.meta.url), "utf8"))
  const minutes = ({ fromMs, toMs, what }: BoardRun["events"][number]): string =>
    `minute ${fromMs / MINUTE_MS} to ${toMs / MINUTE_MS}: ${what}`
  const description =
    `Four panels of the dashboard, over a run of ${run.lengthMs / MINUTE_MS} minutes. ` +
    `${run.events.map((event) => `${capitalized(minutes(event))}.`).join(" ")} ` +
    `${run.panels.map(({ title }) => title).join("; ")}.`
  return diagram(
    "dashboard.svg",
    { title: "Panels of the dashboard", description, height: 2 * PANEL.height + 64 },
    [
      ...run.panels.flatMap((panel, at) =>
        drawPanel(panel, run, {
          ...PANEL,
          x: 8 + (at % 2) * (PANEL.width + 12),
          y: Math.floor(at / 2) * PANEL.height,
        }),
      ),
      ...run.events.map((event, row) =>
        text([MIDDLE, 2 * PANEL.height + 22 + row * 20], capitalized(minutes(event))),
      ),
    ],
  )
}

function drawPanel({ title, series }: BoardPanel, { lengthMs, shownMs }: BoardRun, area: Area): string[] {
  const { ticks = [], unit = "", looks = [] } = STYLES[title] ?? {}
  const chart: Area = { ...CHART, x: area.x + CHART.x, y: area.y + CHART.y }
  const times: Times = {
    endMs: lengthMs,
    everyMs: 10 * MINUTE_MS,
    label: (atMs) => (atMs === 0 ? "0" : `${atMs / MINUTE_MS} min`),
  }
  const most = ticks.at(-1) ?? 1
  const scale = unit === "" ? 1 : 100
  let nameX = chart.x
  return [
    text([area.x + 8, area.y + 22], title, { anchor: "start", isStrong: true }),
    ...timeAxis(chart, times),
    ...amountAxis(chart, most, ticks, unit),
    ...series.flatMap(({ name, values }, at) => {
      const look = looks[at] ?? "others"
      const amounts = values.flatMap((value, step) =>
        value === null ? [] : [[step * shownMs, scale * value] as const],
      )
      const legend = text([nameX, area.y + 41], name, { anchor: "start", look })
      nameX += 100
      return [chartLine(amounts, chart, times, most, look), legend]
    }),
  ]
}

function capitalized(words: string): string {
  return words.charAt(0).toUpperCase() + words.slice(1)
}
