import { isThenable } from "../../packages/core/src/ground/maybe-promise.ts"
import type { StoreResult } from "../../packages/core/src/stores/store.ts"
import type { Cell } from "./cells.ts"
import { Counter, policyOf, WINDOW_MS } from "./counter.ts"
import { LeasedProcess } from "./leased-process.ts"
import { START_MS, Timeline } from "./timeline.ts"
import { harmonicShares, spread } from "./traffic.ts"

const WINDOWS = 3
const FLASH_MS = 1_000

/** A row of the table of the plan. */
interface Row {
  readonly limit: number
  readonly processes: number
  /** Requests per window, as a multiple of the limit. */
  readonly load: number
  readonly isStrict?: boolean
  /** Whether all requests arrive within the first second. */
  readonly isFlash?: boolean
  readonly admitted: number
  readonly callsPerSecond?: number
  readonly callsPerDecision?: number
  /** Calls per second without leases. Absent if the row has no figures for leases at the limit. */
  readonly withoutLeases?: number
}

const ROWS: readonly Row[] = [
  {
    limit: 10_000,
    processes: 8,
    load: 0.7,
    admitted: 1,
    callsPerSecond: 17,
    callsPerDecision: 0.14,
    withoutLeases: 116,
  },
  {
    limit: 100_000,
    processes: 8,
    load: 0.7,
    admitted: 1,
    callsPerSecond: 17,
    callsPerDecision: 0.014,
    withoutLeases: 1_043,
  },
  {
    limit: 100_000,
    processes: 64,
    load: 0.7,
    admitted: 1,
    callsPerSecond: 134,
    callsPerDecision: 0.12,
    withoutLeases: 1_120,
  },
  {
    limit: 1_000_000,
    processes: 8,
    load: 0.7,
    admitted: 1,
    callsPerSecond: 18,
    callsPerDecision: 0.0015,
    withoutLeases: 5_252,
  },
  { limit: 100_000, processes: 8, load: 1.2, admitted: 1, callsPerSecond: 887, callsPerDecision: 0.44 },
  {
    limit: 100_000,
    processes: 8,
    load: 1.2,
    isStrict: true,
    admitted: 1,
    callsPerSecond: 60,
    callsPerDecision: 0.03,
  },
  { limit: 100_000, processes: 4, load: 10, isFlash: true, admitted: 1 },
]

/** Each of these cells simulates 90 million requests, so they take a minute and a half. */
const LARGE_ROWS: readonly Row[] = [
  { limit: 6_000_000, processes: 64, load: 5, admitted: 1, callsPerDecision: 0.013 },
  { limit: 6_000_000, processes: 64, load: 5, isStrict: true, admitted: 1, callsPerDecision: 0.0006 },
]

/** Simulates processes with leases, and returns what they admit and how often they call Redis. */
export function leaseCells(seed: number): Promise<readonly Cell[]> {
  return cellsOf(ROWS, seed)
}

/** Simulates 64 processes that receive five times as many requests as their limit of 6 million. */
export function largeLeaseCells(seed: number): Promise<readonly Cell[]> {
  return cellsOf(LARGE_ROWS, seed)
}

async function cellsOf(rows: readonly Row[], seed: number): Promise<readonly Cell[]> {
  const cells: Cell[] = []
  for (const row of rows) {
    const { requests, admitted, exact, calls, busy } = await simulate(row, seed)
    const { limit, processes, load, isStrict, isFlash, callsPerSecond, callsPerDecision, withoutLeases } = row
    const how = isFlash === true ? " in 1 s" : isStrict === true ? ", strict" : ""
    const name = `L ${limit.toLocaleString("en")}, ${processes} processes, ${load} L${how}`
    const seconds = (WINDOWS * WINDOW_MS) / 1_000
    cells.push({ name, figure: "admitted / exact", planned: row.admitted, run: admitted / exact })
    if (callsPerSecond !== undefined) {
      cells.push({ name, figure: "calls/s", planned: callsPerSecond, run: calls / seconds })
    }
    if (callsPerDecision !== undefined) {
      cells.push({ name, figure: "calls per decision", planned: callsPerDecision, run: calls / requests })
    }
    if (withoutLeases !== undefined) {
      cells.push({ name, figure: "calls/s without leases", planned: withoutLeases, run: busy / seconds })
    }
  }
  return cells
}

/** Returns how many requests the processes admit, and how many of the same requests one exact counter admits. */
async function simulate({ limit, processes, load, isStrict, isFlash }: Row, seed: number) {
  const policy = policyOf(limit, isStrict === true ? "sliding-window-strict" : "sliding-window")
  const check = { policy, partition: "", cost: 1, shadow: false }
  const timeline = new Timeline()
  const shared = new Counter(policy)
  const exact = new Counter(policy)
  const all = Array.from({ length: processes }, () => new LeasedProcess(shared, timeline))
  const perMs = (load * limit) / (isFlash === true ? FLASH_MS : WINDOW_MS)
  const forMs = isFlash === true ? FLASH_MS : WINDOWS * WINDOW_MS
  const arrivals = spread(perMs, harmonicShares(processes), seed)
  const result = { requests: 0, admitted: 0, exact: 0, calls: 0, busy: 0 }
  const count = ({ granted }: StoreResult): void => {
    if (granted) result.admitted++
  }
  for (let atMs = START_MS; atMs < START_MS + forMs; atMs++) {
    await timeline.until(atMs)
    for (let i = 0; i < processes; i++) {
      const requests = arrivals[i]?.until(atMs + 1) ?? 0
      // Without leases, the requests of a process in the same millisecond share a call.
      if (requests > 0) result.busy++
      result.requests += requests
      for (let n = 0; n < requests; n++) {
        if (exact.take(1, atMs) !== undefined) result.exact++
        const answer = (all[i] as LeasedProcess).store.take([check])
        if (isThenable(answer)) void answer.then(count)
        else count(answer)
      }
    }
  }
  await timeline.until(timeline.nowMs + 10)
  for (const { calls } of all) result.calls += calls
  return result
}
