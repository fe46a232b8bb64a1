import { writeFileSync } from "node:fs"
import { readCommandLine } from "./command-line.ts"
import { startContender } from "./contender-process.ts"
import { CONTENDERS } from "./jobs/contenders.ts"
import type { Round } from "./jobs/worker.ts"
import { describeMachine, printMachine } from "./report/machine.ts"
import { pairedRatios, rotated, spreadOf } from "./report/statistics.ts"
import { printTable } from "./report/table.ts"

// Measures `run` next to other limits of concurrency, in memory. bench/README.md explains the output.

const CONCURRENT = 100
const WORKLOADS: Readonly<Record<string, number>> = {
  "100 jobs at a time, none waits": CONCURRENT,
  "1,000 jobs together, at most 100 at a time": 1_000,
}

const { quick, json, only } = readCommandLine()
const jobs = 20_000
const rounds = quick ? 3 : 11

const machine = describeMachine(["@sluice/core", "p-limit", "p-queue", "bottleneck"])
printMachine(machine)

const names = Object.keys(CONTENDERS).filter(
  (name) => name === "nobody" || name === "sluice" || name.includes(only),
)
const processes = names.map((name) => startContender(new URL("jobs/worker.ts", import.meta.url), name))
const samples = new Map<string, number[]>()
// The first round is a warm-up, so it is ignored.
for (let round = -1; round < rounds; round++) {
  for (const { name, ask } of rotated(processes, round + 1)) {
    for (const [workload, together] of Object.entries(WORKLOADS)) {
      const task: Round = { concurrent: CONCURRENT, together, jobs }
      const ns = await ask<number>(task)
      const key = `${name}, ${workload}`
      if (round >= 0) samples.set(key, [...(samples.get(key) ?? []), ns])
    }
  }
}
await Promise.all(processes.map(({ stop }) => stop()))

for (const workload of Object.keys(WORKLOADS)) {
  const taken = (name: string): readonly number[] => samples.get(`${name}, ${workload}`) ?? []
  printTable(
    `CPU time of a job, in microseconds: ${workload}`,
    ["contender", "median", "least", "most", "sluice / it", "from", "to"],
    names.map((name) => {
      const { median, least, most } = spreadOf(taken(name))
      const ratio = spreadOf(pairedRatios(taken("sluice"), taken(name)))
      const times = [median, least, most].map((ns) => (ns / 1_000).toFixed(2))
      return [name, ...times, ...[ratio.median, ratio.least, ratio.most].map((value) => value.toFixed(2))]
    }),
  )
}
if (json !== undefined) writeFileSync(json, JSON.stringify({ machine, samples: [...samples] }, undefined, 2))
