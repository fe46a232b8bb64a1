import { execFileSync } from "node:child_process"
import { writeFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { readCommandLine } from "./command-line.ts"
import { describeMachine, printMachine } from "./report/machine.ts"
import { rotated, spreadOf } from "./report/statistics.ts"
import { printTable } from "./report/table.ts"

// Measures the import of each package in its own process, next to the peers and the frameworks. bench/README.md
// explains the output.

/** An import of a built-in module. Its cost is part of every other import. */
const NOTHING = "node:http"
const PACKAGES = [
  NOTHING,
  ...["@sluice/core", "@sluice/express", "@sluice/fastify", "@sluice/koa", "@sluice/redis"],
  ...["rate-limiter-flexible", "express-rate-limit", "@fastify/rate-limit", "koa-ratelimit"],
  ...["express", "fastify", "koa"],
]

/** The duration of one import in milliseconds. */
interface Sample {
  readonly wallMs: number
  /** CPU time of all threads, including garbage collection and compilation. */
  readonly cpuMs: number
}

const PROGRAM = `
const [began, before] = [performance.now(), process.cpuUsage()]
await import(process.argv[1])
const { user, system } = process.cpuUsage(before)
console.log(JSON.stringify({ wallMs: performance.now() - began, cpuMs: (user + system) / 1_000 }))
process.exit()
`

function importOnce(name: string): Sample {
  const args = ["--input-type=module", "--eval", PROGRAM, name]
  // A program from --eval resolves packages from its working directory.
  const cwd = fileURLToPath(new URL(".", import.meta.url))
  return JSON.parse(execFileSync(process.execPath, args, { cwd, encoding: "utf8" }))
}

const { quick, json, only } = readCommandLine()
const rounds = quick ? 3 : 21
const names = PACKAGES.filter((name) => name === NOTHING || name.includes(only))

const machine = describeMachine(PACKAGES.filter((name) => name !== NOTHING))
printMachine(machine)
const samples = new Map<string, Sample[]>(names.map((name) => [name, []]))
// The first round reads the files from the disk into memory, so it is ignored.
for (let round = -1; round < rounds; round++) {
  for (const name of rotated(names, round + 1)) {
    const sample = importOnce(name)
    if (round >= 0) samples.get(name)?.push(sample)
  }
}

printTable(
  `Importing a package in a new process, in milliseconds; ${rounds} processes each, in turn`,
  ["package", "median", "from", "to", "CPU", "from", "to"],
  [...samples].map(([name, list]) => [name, ...rowOf(list, "wallMs"), ...rowOf(list, "cpuMs")]),
)
if (json !== undefined) {
  writeFileSync(
    json,
    `${JSON.stringify({ machine, rounds, samples: Object.fromEntries(samples) }, null, 2)}\n`,
  )
}

function rowOf(list: readonly Sample[], member: keyof Sample): readonly string[] {
  const { median, least, most } = spreadOf(list.map((sample) => sample[member]))
  return [median, least, most].map((ms) => ms.toFixed(0))
}
