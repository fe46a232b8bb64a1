import type { Cell } from "./cells.ts"
import { Counter, Pending, policyOf, WINDOW_MS } from "./counter.ts"
import { START_MS, Timeline } from "./timeline.ts"
import { Arrivals } from "./traffic.ts"
import { Grants } from "./worst-window.ts"

const ONE_WAY_MS = 40
const SHARES = [0.7, 0.2, 0.1]
const PROCESSES = 4

/** The traffic of all data centers. A roaming client uses the data centers in turn. */
interface Traffic {
  readonly name: string
  readonly limit: number
  readonly units: number
  readonly durationMs: number
  readonly isRoaming?: boolean
}

const BELOW: Traffic = { name: "0.8 L", limit: 100_000, units: 3 * 80_000, durationMs: 3 * WINDOW_MS }
const ABOVE: Traffic = { name: "1.5 L", limit: 100_000, units: 3 * 150_000, durationMs: 3 * WINDOW_MS }
const FLASH: Traffic = { name: "10 L in 1 s", limit: 100_000, units: 1_000_000, durationMs: 1_000 }
const ROAMING: Traffic = {
  name: "roaming, L = 20, 5 L",
  limit: 20,
  units: 3 * 5 * 20,
  durationMs: 3 * WINDOW_MS,
  isRoaming: true,
}

/** The times at which processes charge the far counters. Absent if processes never charge them. */
interface Charging {
  readonly everyMs: number
  /**
   * Whether the processes of a data center charge the far counters at the same time. If false, the times are evenly
   * spread.
   */
  readonly areTogether: boolean
}

const together = (everyMs: number): Charging => ({ everyMs, areTogether: true })
const apart = (everyMs: number): Charging => ({ everyMs, areTogether: false })

/** The store, the traffic, and the figure of the plan. */
const ROWS: readonly [string, Charging | undefined, Traffic, number][] = [
  ["L in each DC", undefined, BELOW, 0.8],
  ["L in each DC", undefined, ABOVE, 1.45],
  ["L in each DC", undefined, FLASH, 3],
  ["L in each DC", undefined, ROAMING, 3.15],
  ["merged every 100 ms", together(100), BELOW, 0.8],
  ["merged every 100 ms", together(100), ABOVE, 1.002],
  ["merged every 100 ms", together(100), FLASH, 1.32],
  ["merged every 100 ms", together(100), ROAMING, 1.05],
  ["merged every second", together(1_000), BELOW, 0.8],
  ["merged every second", together(1_000), ABOVE, 1.01],
  ["merged every second", together(1_000), FLASH, 2.37],
  ["merged every second", together(1_000), ROAMING, 1.1],
  ["merged every 100 ms, each process apart", apart(100), FLASH, 1.32],
  ["merged every second, each process apart", apart(1_000), FLASH, 2.37],
]

/** Simulates three data centers, and returns the most units in any window, divided by the limit. */
export async function mirrorCells(seed: number): Promise<readonly Cell[]> {
  const cells: Cell[] = []
  for (const [store, charging, traffic, planned] of ROWS) {
    const run = (await simulate(traffic, charging, seed)).mostIn(WINDOW_MS) / traffic.limit
    cells.push({ name: `${store}, ${traffic.name}`, figure: "worst / L", planned, run })
  }
  return cells
}

/**
 * Returns the most units in any minute of a client that uses the data centers in turn for three minutes. The client's
 * limit is 100.
 */
export async function mostOfRoaming(requestsPerSecond: number, seed: number): Promise<number> {
  const units = (requestsPerSecond * ROAMING.durationMs) / 1_000
  return (await simulate({ ...ROAMING, limit: 100, units }, together(100), seed)).mostIn(WINDOW_MS)
}

/** Returns the units that all data centers grant. */
async function simulate(traffic: Traffic, charging: Charging | undefined, seed: number): Promise<Grants> {
  const { limit, units, durationMs, isRoaming } = traffic
  const timeline = new Timeline()
  const grants = new Grants(START_MS)
  const counters = SHARES.map(() => new Counter(policyOf(limit)))
  const pending = SHARES.map(() => Array.from({ length: PROCESSES }, () => new Pending()))
  const charge = (from: number, process: Pending): void => {
    for (const taken of process.removeAll()) {
      timeline.after(ONE_WAY_MS, () => {
        const nowMs = Math.floor(timeline.nowMs)
        for (const [to, far] of counters.entries()) if (to !== from) far.charge(taken, nowMs)
      })
    }
  }
  if (charging !== undefined) {
    const { everyMs, areTogether } = charging
    for (const [dc, processes] of pending.entries()) {
      for (const [i, process] of processes.entries()) {
        const phase = areTogether ? dc / SHARES.length : i / PROCESSES
        timeline.every(everyMs, phase, () => charge(dc, process))
      }
    }
  }
  const arrivals =
    isRoaming === true
      ? [new Arrivals(units / durationMs, seed)]
      : SHARES.map((share, i) => new Arrivals((share * units) / durationMs, seed + 7_919 * i))
  let nth = 0
  for (let atMs = START_MS; atMs < START_MS + durationMs; atMs++) {
    await timeline.until(atMs)
    for (const [i, of] of arrivals.entries()) {
      for (let left = of.until(atMs + 1); left > 0; left--) {
        // The requests of a data center go to its processes in turn.
        const turn = nth++
        const dc = isRoaming === true ? turn % SHARES.length : i
        const after = counters[dc]?.take(1, atMs)
        if (after === undefined) continue
        grants.add(atMs, 1)
        pending[dc]?.[turn % PROCESSES]?.add(1, after)
      }
    }
  }
  return grants
}
