import { writeFileSync } from "node:fs"
import { readCommandLine } from "./command-line.ts"
import { type ContenderProcess, startContender } from "./contender-process.ts"
import { describeMachine, printMachine } from "./report/machine.ts"
import { pairedRatios, rotated, spreadOf } from "./report/statistics.ts"
import { printTable, printWanted } from "./report/table.ts"
import { CONTENDERS } from "./store/contenders.ts"
import type { Round, Sample } from "./store/worker.ts"
import { WORKLOADS, type Workload } from "./store/workloads.ts"

// Measures the cost of counting one request in memory: `take` of the store, `decide`, `guard.check`, the store calls
// of the peers, and a Map of objects. bench/README.md explains the output.

const OURS = "sluice take"
const WANTED = [
  { peer: "rate-limiter-flexible consume", times: 3.5 },
  { peer: "express-rate-limit increment", times: 1.8 },
]

/** The workloads with a million keys, for which there are targets. */
const OVER_A_MILLION: readonly Workload[] = ["fill", "uniform", "zipf"]

const { quick, json, only } = readCommandLine()
const keys = 1_000_000
const calls = quick ? 200_000 : 300_000
const generations = quick ? 1 : 4
const rounds = quick ? 2 : 3
const names = Object.keys(CONTENDERS).filter((name) => name === OURS || name.includes(only))
const workloads = Object.keys(WORKLOADS) as Workload[]

const machine = describeMachine()
printMachine(machine)
console.log(
  `${keys} keys, ${generations} processes for each contender, ${rounds} rounds of ${calls} calls in each, in turn`,
)

const samples = new Map<string, Sample[]>()
for (let generation = 0; generation < generations; generation++) await measureGeneration(generation)

const results = workloads.map(report)
console.log()
for (const { peer, times } of WANTED) {
  if (!names.includes(peer)) continue
  for (const { workload, contenders } of results) {
    if (!OVER_A_MILLION.includes(workload)) continue
    const ratio = contenders.find(({ name }) => name === peer)?.ratio.median ?? Number.NaN
    printWanted(`${workload}: ${OURS} faster than ${peer}`, ratio, ratio >= times, `at least ${times}`)
  }
}
if (json !== undefined) {
  const all = Object.fromEntries(samples)
  writeFileSync(json, `${JSON.stringify({ machine, keys, calls, results, samples: all }, null, 2)}\n`)
}

/** Measures all contenders in new processes, so that memory layout and compiled code vary between runs. */
async function measureGeneration(generation: number): Promise<void> {
  const processes = names.map((name) => startContender(new URL("./store/worker.ts", import.meta.url), name))
  try {
    for (const workload of workloads) {
      // Only the first fill of a process inserts new keys, so a process is filled once. For the other workloads the
      // first round is a warm-up.
      const last = workload === "fill" ? 1 : rounds
      for (let round = workload === "fill" ? 1 : 0; round <= last; round++) {
        await measureRound(processes, { workload, keys, calls, seed: 1 + generation * 97 + round }, round > 0)
      }
    }
  } finally {
    await Promise.all(processes.map((one) => one.stop()))
  }
}

async function measureRound(
  processes: readonly ContenderProcess[],
  round: Round,
  isKept: boolean,
): Promise<void> {
  for (const contender of rotated(processes, round.seed)) {
    const sample = await contender.ask<Sample>(round)
    if (isKept) samplesOf(round.workload, contender.name).push(sample)
  }
}

function samplesOf(workload: Workload, name: string): Sample[] {
  const key = `${workload}: ${name}`
  const list = samples.get(key) ?? []
  samples.set(key, list)
  return list
}

function report(workload: Workload) {
  const ours = netOf(workload, OURS)
  const keyNs = spreadOf(names.flatMap((name) => samplesOf(workload, name).map((sample) => sample.keyNs)))
  const contenders = names.map((name) => {
    const net = netOf(workload, name)
    const wall = spreadOf(samplesOf(workload, name).map((sample) => sample.wallNs))
    return { name, cpuNs: spreadOf(net), wallNs: wall, ratio: spreadOf(pairedRatios(net, ours)) }
  })
  printTable(
    `${workload}: ${WORKLOADS[workload]}; making a key ${keyNs.median.toFixed(0)} ns, not counted below`,
    ["", "CPU ns a call", "from", "to", `times ${OURS}`, "from", "to"],
    contenders.map(({ name, cpuNs, ratio }) => [
      name,
      ...[cpuNs.median, cpuNs.least, cpuNs.most].map((ns) => ns.toFixed(0)),
      ...[ratio.median, ratio.least, ratio.most].map((times) => times.toFixed(2)),
    ]),
  )
  return { workload, keyNs, contenders }
}

/** Returns the CPU time of the call alone, without the time for creating its key. */
function netOf(workload: Workload, name: string): number[] {
  return samplesOf(workload, name).map(({ cpuNs, keyNs }) => cpuNs - keyNs)
}
