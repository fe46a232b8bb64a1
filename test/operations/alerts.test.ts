import { execFile } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { parse } from "yaml"
import { ROOT } from "../docs/documents.ts"
import { findPromtool } from "../servers/promtool.ts"
import { ALERT_CASES, type AlertCase } from "./alert-cases.ts"
import { type Exported, exportedMetrics } from "./exported.ts"
import { groupingsOf, unknownIn } from "./promql.ts"

interface Alert {
  readonly alert: string
  readonly expr: string
  readonly for: string
  readonly labels: { readonly severity: string }
  readonly annotations: { readonly summary: string; readonly description: string; readonly runbook: string }
}

const run = promisify(execFile)
const FILE = `${ROOT}docs/operations/alerts.yaml`
const document: { readonly groups: readonly { readonly rules: readonly Alert[] }[] } = parse(
  readFileSync(FILE, "utf8"),
)
const alerts = document.groups.flatMap(({ rules }) => rules)

const folder = mkdtempSync(join(tmpdir(), "sluice-alerts-"))
let promtool: string
let exported: Awaited<ReturnType<typeof exportedMetrics>>
beforeAll(async () => {
  ;[promtool, exported] = await Promise.all([findPromtool(), exportedMetrics()])
})
afterAll(() => rmSync(folder, { recursive: true }))

/** Runs promtool with files of unit tests. Resolves with its error output, which is empty if all tests pass. */
async function complaintsOf(files: readonly object[]): Promise<string> {
  const paths = files.map((content, at) => {
    const path = join(folder, `${at}.test.yaml`)
    // YAML contains JSON.
    writeFileSync(path, JSON.stringify(content))
    return path
  })
  const {
    stdout,
    stderr,
    code = 0,
  } = await run(promtool, ["test", "rules", ...paths]).catch((error) => error)
  return code === 0 ? "" : `${stdout}${stderr}`
}

/** Returns a test file for promtool. The test expects that after the series, `count` alerts of this name fire. */
function firing(alert: string, series: Readonly<Record<string, string>>, count: number): object {
  const { minutes, every = 1 } = ALERT_CASES[alert] as AlertCase
  const test = {
    interval: `${every}m`,
    input_series: Object.entries(series).map(([name, values]) => ({ series: name, values })),
    promql_expr_test: [
      {
        expr: `count(ALERTS{alertname="${alert}",alertstate="firing"}) or vector(0)`,
        eval_time: `${minutes}m`,
        exp_samples: [{ labels: "{}", value: count }],
      },
    ],
  }
  return { rule_files: [FILE], evaluation_interval: `${every}m`, tests: [test] }
}

it("Prometheus accepts the alerts", async () => {
  const { stdout } = await run(promtool, ["check", "rules", FILE])
  expect(stdout).toContain(`SUCCESS: ${alerts.length} rules found`)
})

it("every alert has a test case, and every test case belongs to an alert", () => {
  expect(Object.keys(ALERT_CASES)).toEqual(alerts.map(({ alert }) => alert))
})

it("every alert fires for the series that should trigger it, and not for its quiet series", async () => {
  const files = Object.entries(ALERT_CASES).flatMap(([alert, { fires, quiet }]) => [
    firing(alert, fires, 1),
    firing(alert, quiet, 0),
  ])
  expect(await complaintsOf(files)).toBe("")
})

it("promtool reports a failure if an alert fires although its test expects no alert", async () => {
  const { fires } = ALERT_CASES.SluiceRulesStale as AlertCase
  expect(await complaintsOf([firing("SluiceRulesStale", fires, 0)])).toContain("FAILED")
})

describe.each(alerts)("$alert", ({ alert, expr, for: delay, labels, annotations }) => {
  it("queries only metrics, labels and values that exist", () => {
    const ofService = /\b(sluice_service|rpc)_/.test(expr)
    const sources: Exported[] = ofService ? [exported.service] : [exported.app, exported.service]
    for (const source of sources) expect(unknownIn(expr, source)).toEqual([])
  })

  it("has a severity, a delay, and texts with a first step and only labels of its result", () => {
    expect(delay).toMatch(/^\d+m$/)
    expect(labels.severity).toMatch(/^(critical|warning)$/)
    const { summary, description } = annotations
    expect(description).toMatch(/\bFirst (?!.*\bFirst )/)
    const used = [...`${summary}${description}`.matchAll(/\$labels\.(\w+)/g)].map(([, label]) => label)
    expect(groupingsOf(expr)).toEqual(expect.arrayContaining(used))
    expect(alert).toMatch(/^Sluice/)
  })

  it("links to a page of the documentation, or to a section of a page", () => {
    const [page = "", anchor] = annotations.runbook.split("#")
    const headings = [...readFileSync(ROOT + page, "utf8").matchAll(/^#+ (.*)$/gm)].map(([, text = ""]) =>
      text
        .toLowerCase()
        .replace(/[^\w\- ]/g, "")
        .replaceAll(" ", "-"),
    )
    if (anchor !== undefined) expect(headings).toContain(anchor)
  })
})

it.each([
  ["sum(rate(sluice_decision_duration_count[5m]", ["is not PromQL"]],
  ["sluice_decisions_total", ["no metric sluice_decisions_total"]],
  ['sluice_rule_set_stale{service="shop"}', ["no label service of sluice_rule_set_stale"]],
  ["sum by (policy) (sluice_rule_set_stale)", ["no label policy of sluice_rule_set_stale"]],
  ['sluice_store_errors_total{error_type="slow"}', ['no error_type="slow" of sluice_store_errors_total']],
])("unknownIn reports the mistake in the query %s", (query, problems) => {
  expect(unknownIn(query, exported.app)).toEqual(problems)
})
