import { execFile } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"
import { PrometheusExporter, PrometheusSerializer } from "@opentelemetry/exporter-prometheus"
import { MeterProvider } from "@opentelemetry/sdk-metrics"
import { createLimiter, memoryStore, type Store, StoreUnavailableError } from "@sluice/core"
import { manualClock } from "@sluice/core/testing"
import { instrument } from "@sluice/otel"
import type { BoardPanel, BoardRun } from "../../docs/pictures/dashboard.ts"
import { ROOT } from "../docs/documents.ts"
import { findPromtool } from "../servers/promtool.ts"

const MINUTE_MS = 60_000
const SCRAPE_MS = 15_000
const LENGTH_MS = 30 * MINUTE_MS
/** Interval between two evaluations of the panels. */
const SHOWN_MS = 30_000
/** Grafana's `$__rate_interval` for scrapes every 15 seconds. */
const RATE_INTERVAL = "1m"
/** The panels for which a run without real time has values. For example, a panel of durations would need real time. */
const TITLES = [
  "Decisions per second, by result",
  "Refusals per second, by rule",
  "What shadow rules would refuse",
  "Decisions without the shared store",
]
const STEADY_CLIENTS = 40
const STEADY_EVERY_MS = 5_000
const SCRIPT_EVERY_MS = 200
/** The minutes in which a script sends requests, and the minutes in which the store is unavailable. */
const SCRIPT = { fromMs: 6 * MINUTE_MS, toMs: 14 * MINUTE_MS }
const OUTAGE = { fromMs: 19 * MINUTE_MS, toMs: 24 * MINUTE_MS }

/** The values of each Prometheus series, by scrape. */
type Recorded = ReadonlyMap<string, readonly (number | undefined)[]>

/** Runs a limiter for half an hour on a manual clock, and evaluates the dashboard's queries with Prometheus. */
export async function runBoard(): Promise<BoardRun> {
  const recorded = await recordMetrics()
  const board: { readonly panels: readonly Panel[] } = JSON.parse(
    readFileSync(`${ROOT}docs/operations/grafana.json`, "utf8"),
  )
  const panels = TITLES.map((title) => {
    const [target] = board.panels.find((panel) => panel.title === title)?.targets ?? []
    if (target === undefined) throw new Error(`The dashboard has no panel "${title}"`)
    return { title, ...target }
  })
  return {
    shownMs: SHOWN_MS,
    lengthMs: LENGTH_MS,
    events: [
      { ...SCRIPT, what: `a script sends ${1_000 / SCRIPT_EVERY_MS} requests per second` },
      { ...OUTAGE, what: "the shared store is unavailable" },
    ],
    panels: await evaluate(recorded, panels),
  }
}

interface Panel {
  readonly title: string
  readonly targets?: readonly { readonly expr: string; readonly legendFormat: string }[]
}

/** Returns the values that Prometheus reads from an app in each scrape. */
async function recordMetrics(): Promise<Recorded> {
  const clock = manualClock(0)
  let isDown = false
  const store = failing(memoryStore({ clock }), () => isDown)
  const exporter = new PrometheusExporter({ preventServerStart: true, withoutScopeInfo: true })
  const meterProvider = new MeterProvider({ readers: [exporter] })
  const limiter = createLimiter<{ client: string }>({
    service: "checkout",
    fields: { client: ({ client }) => client },
    rules: [
      { name: "per-client", field: "client", limit: 60, window: "1 minute" },
      { name: "tried-out", field: "client", limit: 20, window: "1 minute", shadow: true },
    ],
    store,
    clock,
    logger: { warn() {}, error() {} },
  })
  instrument(limiter, { meterProvider })
  const recorded = new Map<string, (number | undefined)[]>()
  const serializer = new PrometheusSerializer(undefined, false, undefined, true)
  try {
    for (let scrape = 0; clock.now() <= LENGTH_MS; clock.advance(SCRIPT_EVERY_MS)) {
      const atMs = clock.now()
      isDown = atMs >= OUTAGE.fromMs && atMs < OUTAGE.toMs
      if (atMs % STEADY_EVERY_MS === 0)
        for (let client = 0; client < STEADY_CLIENTS; client++) await limiter.decide({ client: `${client}` })
      if (atMs >= SCRIPT.fromMs && atMs < SCRIPT.toMs) await limiter.decide({ client: "script" })
      if (atMs % SCRAPE_MS !== 0) continue
      const { resourceMetrics } = await exporter.collect()
      for (const [, series = "", value] of serializer
        .serialize(resourceMetrics)
        .matchAll(/^(sluice_\w+(?:\{.*\})?) (\S+)$/gm)) {
        const values = recorded.get(series) ?? []
        values[scrape] = Number(value)
        recorded.set(series, values)
      }
      scrape++
    }
  } finally {
    await limiter.close()
    await meterProvider.shutdown()
  }
  return recorded
}

/** Creates a store that all processes share and that is sometimes unavailable. */
function failing(store: Store, isDown: () => boolean): Store {
  return {
    isShared: true,
    take: (...args) => {
      if (isDown()) throw new StoreUnavailableError("down")
      return store.take(...args)
    },
    read: (...args) => store.read(...args),
    refund: (...args) => store.refund(...args),
    reset: (...args) => store.reset(...args),
    close: () => store.close?.(),
  }
}

/** Evaluates the panels with promtool, which prints the value of each query as a failed expectation. */
async function evaluate(
  recorded: Recorded,
  panels: readonly { readonly title: string; readonly expr: string; readonly legendFormat: string }[],
): Promise<BoardPanel[]> {
  const count = LENGTH_MS / SCRAPE_MS + 1
  const times = Array.from({ length: LENGTH_MS / SHOWN_MS + 1 }, (_, at) => at * SHOWN_MS)
  const exprs = panels.map(({ expr }) =>
    expr.replaceAll("$__rate_interval", RATE_INTERVAL).replaceAll(/"\$\w+"/g, '".*"'),
  )
  const test = {
    interval: `${SCRAPE_MS}ms`,
    input_series: [...recorded].map(([series, values]) => ({
      series,
      values: Array.from({ length: count }, (_, at) => values[at] ?? "_").join(" "),
    })),
    promql_expr_test: exprs.flatMap((expr) =>
      times.map((atMs) => ({
        expr,
        eval_time: `${atMs}ms`,
        exp_samples: [{ labels: "never_there", value: 1 }],
      })),
    ),
  }
  const folder = mkdtempSync(join(tmpdir(), "sluice-board-"))
  try {
    const file = join(folder, "test.yaml")
    writeFileSync(file, JSON.stringify({ evaluation_interval: `${SCRAPE_MS}ms`, tests: [test] }))
    const failed = await promisify(execFile)(await findPromtool(), ["test", "rules", file], {
      maxBuffer: 2 ** 26,
    }).catch((error: { readonly stdout: string; readonly stderr: string }) => error)
    const printed = `${failed.stdout}${failed.stderr}`
    const got = printed.split(/^ *expr: /m).slice(1)
    if (got.length !== panels.length * times.length) throw new Error(`promtool: ${printed.slice(-1_000)}`)
    return panels.map(({ title, legendFormat }, panel) => {
      const series = new Map<string, (number | null)[]>()
      times.forEach((_, at) => {
        const [, result = ""] = (got[panel * times.length + at] ?? "").split("got:")
        for (const [, labels = "", value] of result.matchAll(/\{(.*?)\} ([-+.\dE]+)/g)) {
          const name = legendFormat.replaceAll(/\{\{(\w+)\}\}/g, (_all, label: string) => {
            return new RegExp(`${label}="([^"]*)"`).exec(labels)?.[1] ?? ""
          })
          const values = series.get(name) ?? times.map(() => null)
          values[at] = Math.round(Number(value) * 1_000) / 1_000
          series.set(name, values)
        }
      })
      return { title, series: [...series].map(([name, values]) => ({ name, values })) }
    })
  } finally {
    rmSync(folder, { recursive: true })
  }
}
