import { writeFileSync } from "node:fs"
import { readCommandLine } from "./command-line.ts"
import { agrees, type Cell, medianOf, printCells } from "./scale/cells.ts"
import { largeLeaseCells, leaseCells } from "./scale/lease-cells.ts"
import { mirrorCells } from "./scale/mirror-cells.ts"
import { writeBackCells } from "./scale/write-back-cells.ts"

// Simulates leases, mirrored counters and write-back, and compares the results with the figures of their plan.
// bench/README.md explains the output.

const SEEDS = [60_601, 60_701, 60_801]
/** The run fails if fewer cells agree with the plan. */
const LEAST_CELLS = 5

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
console.log(
  `\n${agreeing} of ${all.length} cells agree with the plan within 5 %. bench/README.md explains the others.`,
)
if (json !== undefined) writeFileSync(json, `${JSON.stringify({ seeds, ...results }, null, 2)}\n`)
if (agreeing < LEAST_CELLS) {
  console.error(`At least ${LEAST_CELLS} cells must agree.`)
  process.exitCode = 1
}
