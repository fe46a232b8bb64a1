import { readFileSync } from "node:fs"
import { cpus, loadavg, release, totalmem } from "node:os"

const PACKAGES = [
  "@sluice/core",
  "rate-limiter-flexible",
  "express-rate-limit",
  "@fastify/rate-limit",
  "koa-ratelimit",
  "fastify",
  "express",
  "koa",
]

/** A load below this value is normal for an idle system. */
const IDLE = 0.5

export interface Machine {
  readonly cpu: string
  readonly cores: number
  readonly memoryGb: number
  readonly system: string
  readonly node: string
  /** The load average before the run. This average shows whether other programs were running. */
  readonly load: number
  readonly versions: Readonly<Record<string, string>>
}

/** Describes the machine and the package versions of a run. */
export function describeMachine(packages: readonly string[] = PACKAGES): Machine {
  return {
    cpu: cpus()[0]?.model ?? "unknown",
    cores: cpus().length,
    memoryGb: Math.round(totalmem() / 2 ** 30),
    system: `${process.platform} ${release()} ${process.arch}`,
    node: process.versions.node,
    load: loadavg()[0] ?? 0,
    versions: Object.fromEntries(packages.map((name) => [name, versionOf(name)])),
  }
}

export function printMachine({ cpu, cores, memoryGb, system, node, load, versions }: Machine): void {
  console.log(
    `${cpu}, ${cores} cores, ${memoryGb} GB, ${system}, Node ${node}, load ${load.toFixed(1)} at the start`,
  )
  console.log(
    Object.entries(versions)
      .map(([name, version]) => `${name} ${version}`)
      .join(", "),
  )
  if (load > IDLE)
    console.log(
      "The machine is busy: trust ratios of CPU time, but not wall-clock times and requests per second.",
    )
}

function versionOf(name: string): string {
  const file = new URL(`../node_modules/${name}/package.json`, import.meta.url)
  return JSON.parse(readFileSync(file, "utf8")).version
}
