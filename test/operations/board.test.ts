import { execFile } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"
import { beforeAll, describe, expect, it, onTestFinished } from "vitest"
import { ROOT } from "../docs/documents.ts"
import { findPromtool } from "../servers/promtool.ts"
import { exportedMetrics } from "./exported.ts"
import { groupingsOf, unknownIn } from "./promql.ts"

interface Panel {
  readonly id: number
  readonly title: string
  readonly type: string
  readonly description?: string
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number }
  readonly targets?: readonly { readonly expr: string; readonly legendFormat: string }[]
}

interface Board {
  readonly panels: readonly Panel[]
  readonly templating: { readonly list: readonly { readonly name: string; readonly query: unknown }[] }
}

const board: Board = JSON.parse(readFileSync(`${ROOT}docs/operations/grafana.json`, "utf8"))
const panels = board.panels.filter(({ type }) => type !== "row")
/** The queries, in which Grafana's variables are replaced by values. */
const queries = panels.flatMap(({ title, targets = [] }) =>
  targets.map(({ expr, legendFormat }) => ({
    title,
    legendFormat,
    query: expr.replaceAll("$__rate_interval", "5m").replaceAll(/"\$\w+"/g, '".*"'),
  })),
)

let exported: Awaited<ReturnType<typeof exportedMetrics>>
beforeAll(async () => {
  exported = await exportedMetrics()
})

describe.each(queries)("$title: $query", ({ query, legendFormat }) => {
  it("reads only metrics, labels and values that exist", () => {
    const sources = /\b(sluice_service|rpc)_/.test(query) ? [exported.service] : Object.values(exported)
    for (const source of sources) expect(unknownIn(query, source)).toEqual([])
  })

  it("names its series with labels that its result has", () => {
    const used = [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)].map(([, label]) => label)
    expect(groupingsOf(query).filter((label) => label !== "le")).toEqual(expect.arrayContaining(used))
  })
})

it("Prometheus accepts every query of the dashboard", async () => {
  const folder = mkdtempSync(join(tmpdir(), "sluice-board-"))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const rules = queries.map(({ query }, at) => ({ record: `query_${at}`, expr: query }))
  writeFileSync(join(folder, "rules.yaml"), JSON.stringify({ groups: [{ name: "board", rules }] }))
  const run = promisify(execFile)(await findPromtool(), ["check", "rules", join(folder, "rules.yaml")])
  expect((await run).stdout).toContain(`SUCCESS: ${queries.length} rules found`)
})

it("every variable of the dashboard is used, and takes its values from an existing label", () => {
  const variables = board.templating.list.filter(({ name }) => name !== "datasource")
  for (const { name, query } of variables) {
    expect(JSON.stringify(board.panels)).toContain(`$${name}`)
    const values = /label_values\((\w+)(?:\{.*\})?, (\w+)\)/.exec((query as { query: string }).query)
    const [, metric = "", label = ""] = values ?? []
    expect(label === "job" || exported.app.get(metric)?.has(label)).toBe(true)
  }
})

it("every panel of the dashboard has a description, and overlaps no other panel", () => {
  expect(panels.length).toBeGreaterThan(10)
  expect(new Set(board.panels.map(({ id }) => id)).size).toBe(board.panels.length)
  for (const { title, description, gridPos } of panels) {
    expect([title, description]).toEqual([title, expect.stringMatching(/\w.*\.$/)])
    const over = panels.filter(
      ({ gridPos: { x, y, w, h } }) =>
        x < gridPos.x + gridPos.w && gridPos.x < x + w && y < gridPos.y + gridPos.h && gridPos.y < y + h,
    )
    expect([title, over.map((panel) => panel.title)]).toEqual([title, [title]])
  }
})
