import { writeFileSync } from "node:fs"
import { readCommandLine } from "./command-line.ts"
import { startServer } from "./redis/server.ts"
import { agrees, type Cell, medianOf, printCells } from "./scale/cells.ts"
import { type HitRate, measureHitRates, printHitRates } from "./scale/hit-rates.ts"
import { largeLeaseCells, leaseCells } from "./scale/lease-cells.ts"
import { mirrorCells } from "./scale/mirror-cells.ts"
import { writeBackCells } from "./scale/write-back-cells.ts"

// Simulates leases, mirrored counters and write-back, and compares the results with the figures in their plan. Also
// counts how many decisions need no Redis call. bench/README.md explains the output.

const SEEDS = [60_601, 60_701, 60_801]
/** The run fails if fewer cells agree with the plan. */
const LEAST_CELLS = 5
/** The tables fill up in the first window. The second window is counted. */
const WINDOWS = { warmUpMs: 30_000, forMs: 30_000, seed: 60_901 }
const TRAFFIC = { clients: 100_000, limit: 1_000, tables: [1_000, 10_000], ...WINDOWS }

const TABLES: Readonly<Record<string, (seed: number) => Promise<readonly Cell[]>>> = {
  leases: leaseCells,
  "large leases": largeLeaseCells,
  mirrors: mirrorCells,
  "write-back": writeBackCells,
}

const { quick, json, only } = readCommandLine()
const seeds = quick ? SEEDS.slice(0, 1) : SEEDS
const results: Record<string, readonly Cell[]> = {}
for (const [name, cellsOf] of Object.entries(TABLES)) {
  if (!name.includes(only)) continue
  const runs: (readonly Cell[])[] = []
  const used = name.startsWith("large") ? seeds.slice(0, 1) : seeds
  for (const seed of used) runs.push(await cellsOf(seed))
  const cells = medianOf(runs)
  results[name] = cells
  printCells(
    `${name}, simulated; ${used.length > 1 ? "median of the seeds" : "seed"} ${used.join(", ")}`,
    cells,
  )
}
const all = Object.values(results).flat()
const agreeing = all.filter(agrees).length
if (all.length > 0) {
  console.log(
    `\n${agreeing} of ${all.length} cells agree with the plan within 5 %. bench/README.md explains the others.`,
  )
}
const hitRates = "hit rates".includes(only) ? await countHits() : []
if (json !== undefined) writeFileSync(json, `${JSON.stringify({ seeds, ...results, hitRates }, null, 2)}\n`)
if (all.length > 0 && agreeing < LEAST_CELLS) {
  console.error(`At least ${LEAST_CELLS} cells must agree.`)
  process.exitCode = 1
}

async function countHits(): Promise<readonly HitRate[]> {
  const server = await startServer()
  try {
    const traffic = quick ? { ...TRAFFIC, warmUpMs: 5_000, forMs: 5_000 } : TRAFFIC
    const rates = await measureHitRates(server, traffic)
    printHitRates(traffic, rates)
    return rates
  } finally {
    await server.stop()
  }
}
