import { execFileSync } from "node:child_process"
import { mkdirSync, writeFileSync } from "node:fs"
import { join, relative } from "node:path"
import { fileURLToPath } from "node:url"
import { FIGURES_FILE, readFigures } from "./figures/figures.ts"
import { updateFigures } from "./figures/update.ts"
import { hasWrk, NO_WRK } from "./http/wrk.ts"
import { type OverviewCommand, readOverviewCommand } from "./overview/command-line.ts"
import { MEASURE } from "./overview/measure.ts"
import type { Measurement } from "./overview/measurement.ts"
import { pageOf } from "./overview/page.ts"
import { drawPlots } from "./overview/plots.ts"
import { printPart } from "./overview/print.ts"
import { QUICK, USUAL } from "./overview/settings.ts"
import { startServer, versionOf } from "./redis/server.ts"
import { describeMachine, printMachine } from "./report/machine.ts"
import { Steadiness } from "./report/steadiness.ts"

// Compares Sluice with its peers in one run. Prints tables, and writes a JSON file and a page of plots. bench/README.md
// explains them.

const PACKAGES = [
  "@sluice/core",
  ...[
    "express-rate-limit",
    "rate-limit-redis",
    "rate-limiter-flexible",
    "@fastify/rate-limit",
    "koa-ratelimit",
  ],
  ...["@upstash/ratelimit", "express", "fastify", "koa", "ioredis"],
]

const { quick, parts, into, figures } = readCommand()
if (parts.includes("http") && !(await hasWrk())) {
  console.error(`${NO_WRK} Or leave HTTP out: --only in-process --only redis ...`)
  process.exit(2)
}
const settings = quick ? QUICK : USUAL
const begunMs = performance.now()
const machine = describeMachine(PACKAGES)
const steadiness = new Steadiness()
const measurements: Measurement[] = []
const redis = await startServer()
try {
  printMachine(machine)
  console.log(`Redis ${await versionOf(redis)}; ${settings.rounds} rounds, in turn, one process for each`)
  for (const part of parts) {
    const measured = await MEASURE[part]({ redis, settings, steadiness })
    printPart(part, measured)
    measurements.push(...measured)
  }
} finally {
  await redis.stop()
}
mkdirSync(into, { recursive: true })
const json = join(into, "bench.json")
const page = join(into, "bench.html")
const about = { machine, steadiness: steadiness.says }
writeFileSync(json, `${JSON.stringify({ ...about, settings, measurements }, null, 2)}\n`)
writeFileSync(page, pageOf(about, await drawPlots(measurements)))
if (figures) writeFigures()
const minutes = (performance.now() - begunMs) / 60_000
console.log(
  `\n${steadiness.says}\n${minutes.toFixed(1)} minutes. Every figure: ${shown(json)}. Plots: ${shown(page)}`,
)

/** Writes the measurements into bench/figures.json, with the machine, the day and the commit. */
function writeFigures(): void {
  const { cpu, cores } = machine
  const run = {
    command: process.argv.slice(2).includes("--only") ? `bench --only ${parts.join(" --only ")}` : "bench",
    machine: `${cpu}, ${cores} cores; ${steadiness.says}`,
    date: new Date().toISOString().slice(0, 10),
    commit: execFileSync("git", ["rev-parse", "--short=8", "HEAD"], { encoding: "utf8" }).trim(),
  }
  const updated = updateFigures(readFigures(), measurements, run)
  writeFileSync(FIGURES_FILE, `${JSON.stringify(updated, null, 2)}\n`)
  console.log("Updated bench/figures.json. Draw its charts again with `pnpm pictures`.")
}

function readCommand(): OverviewCommand {
  try {
    return readOverviewCommand(process.argv.slice(2), fileURLToPath(new URL("./results", import.meta.url)))
  } catch (error) {
    console.error((error as Error).message)
    process.exit(2)
  }
}

function shown(path: string): string {
  return relative(process.env.INIT_CWD ?? process.cwd(), path)
}
