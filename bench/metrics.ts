import { writeFileSync } from "node:fs"
import { readCommandLine } from "./command-line.ts"
import { startContender } from "./contender-process.ts"
import { CONTENDERS } from "./metrics/contenders.ts"
import type { Round } from "./metrics/worker.ts"
import { describeMachine, printMachine } from "./report/machine.ts"
import { median, rotated, spreadOf } from "./report/statistics.ts"
import { printTable } from "./report/table.ts"

// Measures the cost of metrics for a decision on the memory store. bench/README.md explains the output.

const RULES = [1, 3]

const { quick, json, only } = readCommandLine()
const calls = 100_000
const rounds = quick ? 3 : 11

const machine = describeMachine(["@sluice/core", "@opentelemetry/api", "@opentelemetry/sdk-metrics"])
printMachine(machine)

const names = Object.keys(CONTENDERS).filter((name) => name === "nobody" || name.includes(only))
const processes = names.map((name) => startContender(new URL("metrics/worker.ts", import.meta.url), name))
const samples = new Map<string, number[]>()
// The first round is a warm-up, so it is ignored.
for (let round = -1; round < rounds; round++) {
  for (const { name, ask } of rotated(processes, round + 1)) {
    for (const rules of RULES) {
      const task: Round = { rules, calls }
      const ns = await ask<number>(task)
      const key = `${name} ${rules}`
      if (round >= 0) samples.set(key, [...(samples.get(key) ?? []), ns])
    }
  }
}
await Promise.all(processes.map(({ stop }) => stop()))

const taken = (name: string, rules: number): readonly number[] => samples.get(`${name} ${rules}`) ?? []
const us = (ns: number): string => (ns / 1_000).toFixed(2)
for (const rules of RULES) {
  const nobody = taken("nobody", rules)
  printTable(
    `CPU time of a decision with ${rules === 1 ? "one rule" : `${rules} rules`}, in microseconds`,
    ["listener", "median", "least", "most", "over nobody"],
    names.map((name) => {
      const all = taken(name, rules)
      const spread = spreadOf(all)
      const over = median(all.map((ns, round) => ns - (nobody[round] ?? Number.NaN)))
      return [name, us(spread.median), us(spread.least), us(spread.most), us(over)]
    }),
  )
}
if (json !== undefined) writeFileSync(json, JSON.stringify({ machine, samples: [...samples] }, undefined, 2))
