import { writeFileSync } from "node:fs"
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { parseRuleDocument } from "@sluice/rules"
import { readCommandLine } from "./command-line.ts"
import { describeMachine, printMachine } from "./report/machine.ts"
import { median } from "./report/statistics.ts"
import { printTable, printWanted } from "./report/table.ts"
import { type BookCosts, LIMITERS, measureBook } from "./rules/book-costs.ts"
import { missingEngine, startDynamoDBServices } from "./rules/dynamodb-services.ts"
import { DIFFERENCES, decisionUs } from "./rules/large-sets.ts"
import { changeToEnforcement, type Way } from "./rules/latency.ts"
import { measureOverrides, timesWithout } from "./rules/overrides.ts"
import { StoredServices } from "./rules/stored-services.ts"
import type { Stretches } from "./rules/stretches.ts"

// Measures rules from a source: the cost of thousands of services, and the time until a change is enforced.
// bench/README.md explains the output.

const SERVICES = 5_000
const INSTANCES = 50
const POLL_MS = 1_000
/** Books do not poll, because the benchmark reloads them itself. */
const NEVER_MS = 3_600_000

const { quick, json } = readCommandLine()
setFlagsFromString("--expose-gc")
const collectGarbage = runInNewContext("gc") as () => void

const machine = describeMachine(["@sluice/core"])
printMachine(machine)

// A no-op interval that keeps the process alive, because limiters and servers that are stopping do not.
const held = setInterval(() => {}, 60_000)
const rounds = quick ? 2 : 5
const source = new StoredServices(SERVICES, NEVER_MS)
// The first document that a process parses compiles the schema. Measure the compilation separately, as a cost of
// starting.
const firstMs = timed(() => parseRuleDocument({ rules: [{ limit: 1, window: "1m", match: { path: "/" } }] }))
const inList = await measureBook(
  {
    source,
    change(round) {
      for (let index = 0; index < SERVICES; index++)
        source.write(`service-${index}`, 2 + round, 7 + index + round)
    },
  },
  rounds,
  collectGarbage,
)
const inTable = missingEngine === undefined ? await measureTable() : undefined

async function measureTable(): Promise<BookCosts> {
  const table = await startDynamoDBServices(SERVICES, NEVER_MS)
  try {
    return await measureBook(table, rounds, collectGarbage)
  } finally {
    await table.stop()
  }
}

function timed(work: () => unknown): number {
  const beganAtMs = performance.now()
  work()
  return performance.now() - beganAtMs
}

const ms = (value: number): string => value.toFixed(1)
/** Loading the rules is the same work in every round. The round with the shortest maximum contains the least noise. */
const row = (name: string, samples: readonly Stretches[]): readonly string[] => [
  name,
  ms(median(samples.map(({ tookMs }) => tookMs))),
  ms(median(samples.map(({ cpuMs }) => cpuMs))),
  ms(Math.min(...samples.map(({ wallMs }) => wallMs))),
  ms(Math.min(...samples.map(({ workMs }) => workMs))),
]
const rows = (where: string, { loads, unchanged, changed }: BookCosts): readonly (readonly string[])[] => [
  row(`${where}: load`, loads),
  row(`${where}: poll, nothing changed`, unchanged),
  row(`${where}: poll, all changed`, changed),
]
printTable(
  `${SERVICES} services of 2 to 3 rules; ${LIMITERS} of them have a limiter when all change`,
  ["", "ms", "CPU ms", "longest stretch", "of work"],
  [
    ["first document of the process", ms(firstMs), "", ms(firstMs), ""],
    ...rows("in a list", inList),
    ...(inTable === undefined ? [] : rows("in DynamoDB", inTable)),
  ],
)
if (inTable === undefined) console.log(`not measured in DynamoDB: ${missingEngine}`)

const large: [name: string, few: number, many: number][] = []
for (const [name, matchOf] of Object.entries(DIFFERENCES)) {
  large.push([name, await decisionUs(matchOf, 10, rounds), await decisionUs(matchOf, 1_000, rounds)])
}
printTable(
  "CPU time of a decision in us, when one rule of the set matches the request",
  ["", "10 rules", "1,000 rules", "times"],
  large.map(([name, few, many]) => [name, few.toFixed(2), many.toFixed(2), (many / few).toFixed(2)]),
)

const overridden = await measureOverrides()
printTable(
  "CPU time of a decision in us, for 10,000 clients of one rule",
  ["", "no overrides", "10,000 overrides", "times"],
  overridden.map((costs) => [
    costs.where,
    median(costs.withoutUs).toFixed(2),
    median(costs.withUs).toFixed(2),
    timesWithout(costs).toFixed(2),
  ]),
)

const ways: readonly Way[] = ["poll", "refresh"]
const latencies = new Map<Way, readonly number[]>()
for (const way of ways) latencies.set(way, await changeToEnforcement(way, INSTANCES, quick ? 2 : 10, POLL_MS))
clearInterval(held)
const at = (values: readonly number[] = [], share: number): number =>
  values[Math.ceil(values.length * share) - 1] ?? Number.NaN
printTable(
  `ms from a change to the first decision by the new rules; ${INSTANCES} instances that poll every ${POLL_MS} ms`,
  ["", "median", "p99", "most"],
  ways.map((way) => [way, ...[0.5, 0.99, 1].map((share) => ms(at(latencies.get(way), share)))]),
)

console.log()
const longest = ({ loads, unchanged, changed }: BookCosts): number =>
  Math.max(...[loads, unchanged, changed].map((samples) => Math.min(...samples.map(({ workMs }) => workMs))))
for (const [where, costs] of Object.entries({ "a list": inList, DynamoDB: inTable })) {
  if (costs === undefined) continue
  const { loadMs, heapMb } = costs
  printWanted(`${SERVICES} services load from ${where}, in ms`, loadMs, loadMs < 2_000, "below 2000")
  printWanted(`${SERVICES} services from ${where} take, in MB of heap`, heapMb, heapMb < 20, "below 20")
}
const work = longest(inList)
printWanted("longest stretch of parsing, compiling and swapping, in ms", work, work <= 5, "at most 5")
if (inTable !== undefined) {
  const all = longest(inTable)
  printWanted("longest stretch including the SDK's decoding of pages, in ms", all, all <= 10, "at most 10")
}
for (const [name, few, many] of large) {
  const times = many / few
  printWanted(
    `a decision among 1,000 rules that differ ${name}, of one among 10`,
    times,
    times <= 5,
    "at most 5",
  )
}
for (const costs of overridden) {
  const times = timesWithout(costs)
  const what = `a decision under a rule with 10,000 overrides, of one without, ${costs.where}`
  printWanted(what, times, times <= 1.05, "at most 1.05")
}
const polled = at(latencies.get("poll"), 0.99)
printWanted(
  "change enforced after, by polling, p99 in ms",
  polled,
  polled <= POLL_MS + 1_000,
  "the interval + 1000",
)
const refreshed = at(latencies.get("refresh"), 0.99)
printWanted("change enforced after, by refresh, p99 in ms", refreshed, refreshed <= 1_000, "at most 1000")

if (json !== undefined) {
  const figures = { firstMs, inList, inTable, large }
  writeFileSync(
    json,
    JSON.stringify({ machine, ...figures, latencies: Object.fromEntries(latencies) }, null, 2),
  )
}
