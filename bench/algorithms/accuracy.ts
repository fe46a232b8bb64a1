import { printTable, printWanted } from "../report/table.ts"
import { admittedByLog, type Judged, judge } from "./judge.ts"
import { KINDS, kindOf, policyOf } from "./kinds.ts"
import { type Arrivals, bursty, edge, onOff, poisson } from "./traffic.ts"

const LIMIT = 100
const WINDOW_MS = 60_000
const SEED = 60_601
/** Mean requests per window, as multiples of the limit. */
const LOADS = [0.5, 0.9, 1, 1.1, 1.5, 2, 3, 5, 10]
const STRICT = "sliding-window-strict"

/** The minimum for the strict window's admissions as a share of an exact log's, by its number of sub-windows. */
const WANTED = [
  { buckets: 60, least: 0.98 },
  { buckets: 120, least: 0.99 },
]

export interface Row extends Judged {
  readonly name: string
  readonly traffic: string
  /** Admissions as a share of the admissions of an exact log. */
  readonly share: number
}

/**
 * Compares each algorithm with two exact logs. The first log records the algorithm's own admissions and judges each
 * decision. The other decides by itself, and its total is the reference.
 */
export async function measureAccuracy(isQuick: boolean): Promise<readonly Row[]> {
  const windows = isQuick ? 20 : 100
  const rows = judgeAll(windows)
  print(rows, windows)
  console.log()
  printWantedShares(10 * windows)
  printWantedOfNone(rows)
  return rows
}

/** Returns the results of every counter under every kind of traffic, over `windows` windows. */
export function judgeAll(windows: number): readonly Row[] {
  const counters = [
    ...KINDS.map((kind) => {
      const isParted = kind.takes.includes("buckets")
      return { name: isParted ? `${kind.name}, 60` : kind.name, kind, buckets: 60 }
    }),
    { name: `${STRICT}, 120`, kind: kindOf(STRICT), buckets: 120 },
  ]
  const traffics: [string, Arrivals][] = [
    ...LOADS.map((load): [string, Arrivals] => {
      return [`poisson ${load}`, poisson(load * LIMIT, WINDOW_MS, windows, SEED)]
    }),
    ["bursty", bursty(1.5 * LIMIT, WINDOW_MS, windows, SEED)],
    ["on/off", onOff(1.5 * LIMIT, WINDOW_MS, windows, SEED)],
    ["edge", edge(2 * LIMIT, WINDOW_MS, windows, SEED)],
  ]
  const rows: Row[] = []
  for (const [traffic, arrivals] of traffics) {
    const byLog = admittedByLog(LIMIT, WINDOW_MS, arrivals)
    for (const { name, kind, buckets } of counters) {
      const judged = judge(policyOf(kind, { limit: LIMIT, windowMs: WINDOW_MS, buckets }), arrivals)
      rows.push({ ...judged, name, traffic, share: judged.admitted / byLog })
    }
  }
  return rows
}

function print(rows: readonly Row[], windows: number): void {
  const names = [...new Set(rows.map(({ name }) => name))]
  const traffics = [...new Set(rows.map(({ traffic }) => traffic))]
  const of = `${LIMIT} a minute, ${windows} minutes, seed ${SEED}`
  const table = (title: string, cell: (row: Row) => string): void =>
    printTable(
      `${title}; ${of}`,
      ["", ...traffics],
      names.map((name) => [name, ...rows.filter((row) => row.name === name).map(cell)]),
    )
  table("admitted, % of what an exact log admits; Poisson by its mean, times the limit", ({ share }) =>
    (100 * share).toFixed(1),
  )
  table("the most in any minute", ({ most }) => most.toFixed(0))
  table("wrongly admitted, % of requests: as many as the limit were in the window", (row) =>
    percent(row.wronglyAdmitted, row.requests),
  )
  table("wrongly refused, % of requests: fewer than the limit were in the window", (row) =>
    percent(row.wronglyRefused, row.requests),
  )
}

/**
 * Prints the strict window's lowest share of an exact log's admissions under Poisson traffic. This run covers more
 * windows than the runs for the tables. The counter alternates between using up its limit and waiting, and a run may
 * end anywhere in that cycle. Over a few windows, the position of the end alone changes the share by about a percent.
 */
function printWantedShares(windows: number): void {
  for (const { buckets, least } of WANTED) {
    const policy = policyOf(kindOf(STRICT), { limit: LIMIT, windowMs: WINDOW_MS, buckets })
    const shares = LOADS.map((load) => {
      const arrivals = poisson(load * LIMIT, WINDOW_MS, windows, SEED)
      return judge(policy, arrivals).admitted / admittedByLog(LIMIT, WINDOW_MS, arrivals)
    })
    const share = Math.min(...shares)
    const at = LOADS[shares.indexOf(share)]
    printWanted(
      `${STRICT}, ${buckets}: least % of what a log admits under Poisson, ${windows} minutes, at ${at} times the limit`,
      100 * share,
      share >= least,
      `at least ${100 * least}`,
    )
  }
}

function printWantedOfNone(rows: readonly Row[]): void {
  for (const name of [`${STRICT}, 60`, `${STRICT}, 120`, "sliding-log"]) {
    const wrong = rows.reduce((sum, row) => (row.name === name ? sum + row.wronglyAdmitted : sum), 0)
    printWanted(`${name}: wrongly admitted`, wrong, wrong === 0, "none")
  }
}

function percent(part: number, whole: number): string {
  return ((100 * part) / whole).toFixed(2)
}
