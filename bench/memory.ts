import { writeFileSync } from "node:fs"
import { readCommandLine } from "./command-line.ts"
import { startContender } from "./contender-process.ts"
import { CONTENDERS } from "./memory/contenders.ts"
import type { Bytes, Holds, Task } from "./memory/worker.ts"
import { describeMachine, printMachine } from "./report/machine.ts"
import { median, rotated } from "./report/statistics.ts"
import { printTable, printWanted } from "./report/table.ts"

// Measures the memory of a million clients, and how long a single insert or sweep blocks the event loop.
// bench/README.md explains the output.

const OURS = "sluice memory store"
const MAP = "Map of objects"
const MOST_BYTES = 60
const MOST_OF_A_MAP = 1 / 3

const { quick, json, only } = readCommandLine()
const keys = 1_000_000
const runs = quick ? 2 : 7
const names = Object.keys(CONTENDERS).filter((name) => name === OURS || name === MAP || name.includes(only))

const machine = describeMachine()
printMachine(machine)
console.log(`${keys} keys, ${runs} runs in a new process each, in turn`)

const bytes = new Map<string, Bytes>()
const holds = new Map<string, Holds[]>(names.map((name) => [name, []]))
for (const name of names) bytes.set(name, await measure<Bytes>(name, { measure: "bytes", keys }))
for (let run = 0; run < runs; run++) {
  for (const name of rotated(names, run))
    holds.get(name)?.push(await measure<Holds>(name, { measure: "holds", keys }))
}

const results = names.map((name) => {
  const taken = bytes.get(name) as Bytes
  const held = holds.get(name) as Holds[]
  const inserts = held.map(({ insertMs }) => insertMs)
  const sweeps = held.map(({ sweepMs }) => sweepMs ?? Number.NaN)
  return {
    name,
    bytesAKey: taken.atAll,
    mostBytesAKey: taken.atMost,
    // The data structure does the same work in every run. The run with the shortest maximum contains the least noise.
    insertMs: Math.min(...inserts),
    medianInsertMs: median(inserts),
    sweepMs: Math.min(...sweeps),
    medianSweepMs: median(sweeps),
    left: median(held.map(({ left }) => left ?? Number.NaN)),
  }
})

printTable(
  "Memory and the longest hold of the event loop by one insert and one sweep, without garbage collection",
  ["", "bytes a key", "at most", "insert ms", "median", "sweep ms", "median", "expired, left"],
  results.map((result) => [
    result.name,
    result.bytesAKey.toFixed(1),
    result.mostBytesAKey.toFixed(1),
    ...[result.insertMs, result.medianInsertMs, result.sweepMs, result.medianSweepMs].map((ms) =>
      Number.isNaN(ms) ? "-" : ms.toFixed(3),
    ),
    Number.isNaN(result.left) ? "-" : String(result.left),
  ]),
)

const ours = results.find(({ name }) => name === OURS)
const map = results.find(({ name }) => name === MAP)
if (ours !== undefined && map !== undefined) {
  const insert = ours.insertMs / map.insertMs
  const sweep = ours.sweepMs / map.sweepMs
  console.log()
  printWanted("bytes a key", ours.bytesAKey, ours.bytesAKey <= MOST_BYTES, `at most ${MOST_BYTES}`)
  printWanted("hold by an insert, as a share of a Map's", insert, insert <= MOST_OF_A_MAP, "at most a third")
  printWanted("hold by a sweep, as a share of a Map's", sweep, sweep <= MOST_OF_A_MAP, "at most a third")
}
if (json !== undefined) {
  const samples = Object.fromEntries(holds)
  writeFileSync(json, `${JSON.stringify({ machine, keys, results, samples }, null, 2)}\n`)
}

async function measure<Measured>(name: string, task: Task): Promise<Measured> {
  const contender = startContender(new URL("./memory/worker.ts", import.meta.url), name)
  try {
    return await contender.ask<Measured>(task)
  } finally {
    await contender.stop()
  }
}
