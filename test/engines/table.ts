import { basename } from "node:path"

/** The groups of the test files in `test/redis`, by the beginning of their names. A file is in its first group. */
const GROUPS: readonly (readonly [name: string, files: RegExp])[] = [
  ["contracts", /\.contract\./],
  ["clients", /^(clients|glide|guide|ioredis|shared-client|tls)/],
  ["failover", /^(faults|sentinel)/],
  ["cluster", /^cluster/],
  ["leases", /^(leases|write-back)/],
  ["mirrors", /^mirrors/],
  ["permits", /^(permits|reservations)/],
  ["deny-cache", /^deny-cache/],
  ["counting", /./],
]

export const GROUP_NAMES: readonly string[] = GROUPS.map(([name]) => name)

/** The part of Vitest's JSON report that the table needs. */
export interface TestReport {
  readonly testResults: readonly {
    readonly name: string
    readonly status: string
    readonly assertionResults: readonly { readonly status: string }[]
  }[]
}

/** The tests of one engine. */
export interface EngineRun {
  /** The engine's name and full version. */
  readonly engine: string
  readonly report: TestReport
}

/** Returns the group of a test file. */
export function groupOf(path: string): string {
  const file = basename(path)
  return GROUPS.find(([, files]) => files.test(file))?.[0] ?? ""
}

/** Returns the number of tests that passed, and of all tests that ran. A file that did not load counts as a test. */
export function countsOf(
  { testResults }: TestReport,
  group?: string,
): readonly [passed: number, all: number] {
  let passed = 0
  let all = 0
  for (const { name, status, assertionResults } of testResults) {
    if (group !== undefined && groupOf(name) !== group) continue
    const ran = assertionResults.filter((test) => test.status === "passed" || test.status === "failed")
    passed += ran.filter((test) => test.status === "passed").length
    const isBroken = status === "failed" && !ran.some((test) => test.status === "failed")
    all += ran.length + (isBroken ? 1 : 0)
  }
  return [passed, all]
}

/** Returns the lines of a table with a row for each engine and a column for each group that ran. */
export function tableOf(runs: readonly EngineRun[]): string[] {
  const groups = GROUP_NAMES.filter((group) => runs.some(({ report }) => countsOf(report, group)[1] > 0))
  const cell = (report: TestReport, group?: string): string => countsOf(report, group).join("/")
  const percent = ({ report }: EngineRun): string => {
    const [passed, all] = countsOf(report)
    return `${all === 0 ? 0 : Math.floor((passed * 100) / all)} %`
  }
  const rows = [
    ["engine", ...groups, "all", ""],
    ...runs.map((run) => [
      run.engine,
      ...groups.map((group) => cell(run.report, group)),
      cell(run.report),
      percent(run),
    ]),
  ]
  const widths = rows[0]?.map((_, at) => Math.max(...rows.map((row) => row[at]?.length ?? 0))) ?? []
  return rows.map((row) =>
    row
      .map((text, at) => text.padEnd(widths[at] ?? 0))
      .join("  ")
      .trimEnd(),
  )
}
