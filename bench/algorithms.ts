import { writeFileSync } from "node:fs"
import { measureAccuracy } from "./algorithms/accuracy.ts"
import { measureBound } from "./algorithms/bound.ts"
import { measureMemory } from "./algorithms/memory.ts"
import { measureSpeed } from "./algorithms/speed.ts"
import { readCommandLine } from "./command-line.ts"
import { describeMachine, printMachine } from "./report/machine.ts"

const PARTS: Readonly<Record<string, (isQuick: boolean) => Promise<unknown>>> = {
  bound: measureBound,
  accuracy: measureAccuracy,
  memory: measureMemory,
  speed: measureSpeed,
}
const { quick, json, only } = readCommandLine()
const machine = describeMachine(["@sluice/core", "ioredis"])
printMachine(machine)
const results: Record<string, unknown> = {}
for (const [name, measure] of Object.entries(PARTS)) {
  if (name.includes(only)) results[name] = await measure(quick)
}
if (json !== undefined) writeFileSync(json, `${JSON.stringify({ machine, ...results }, null, 2)}\n`)
