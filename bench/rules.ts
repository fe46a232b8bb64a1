import { writeFileSync } from "node:fs"
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { createLimiter, createRuleBook, parseRuleDocument } from "@sluice/core"
import { readCommandLine } from "./command-line.ts"
import { describeMachine, printMachine } from "./report/machine.ts"
import { median } from "./report/statistics.ts"
import { printTable, printWanted } from "./report/table.ts"
import { changeToEnforcement, type Way } from "./rules/latency.ts"
import { StoredServices } from "./rules/stored-services.ts"
import { longestStretches, type Stretches } from "./rules/stretches.ts"

/** Rules from a source: what thousands of services cost, and how soon a change is enforced. */
const SERVICES = 5_000
const LIMITERS = 500
const INSTANCES = 50
const POLL_MS = 1_000
const LOGGER = { warn() {}, error() {} }

const { quick, json } = readCommandLine()
setFlagsFromString("--expose-gc")
const collectGarbage = runInNewContext("gc") as () => void

const machine = describeMachine(["@sluice/core"])
printMachine(machine)

const source = new StoredServices(SERVICES, 30_000)
// The first document that a process parses compiles the schema, whoever parses it: that is part of its start.
const firstMs = timed(() => parseRuleDocument({ rules: [{ limit: 1, window: "1m", match: { path: "/" } }] }))
collectGarbage()
const heapBefore = process.memoryUsage().heapUsed
const book = createRuleBook({ source, services: "all", logger: LOGGER })
const startedAtMs = performance.now()
let loadMs = 0
const loads = [
  await longestStretches(async () => {
    await book.ready()
    loadMs = performance.now() - startedAtMs
  }),
]
collectGarbage()
const heapMb = (process.memoryUsage().heapUsed - heapBefore) / 1e6

const rounds = quick ? 2 : 5
const unchanged: Stretches[] = []
for (let round = 0; round < rounds * 4; round++) unchanged.push(await longestStretches(() => book.refresh()))

// Everything changes at once, and limiters have to compile what has changed.
const limiters = Array.from({ length: LIMITERS }, (_, index) =>
  createLimiter({ rules: book, service: `service-${index}`, logger: LOGGER }),
)
const changed: Stretches[] = []
for (let round = 0; round < rounds; round++) {
  for (let index = 0; index < SERVICES; index++)
    source.write(`service-${index}`, 2 + round, 7 + index + round)
  changed.push(await longestStretches(() => book.refresh()))
}
await Promise.all(limiters.map((limiter) => limiter.close()))
book.close()
for (let round = 1; round < rounds; round++) {
  const another = createRuleBook({ source, services: "all", logger: LOGGER })
  loads.push(await longestStretches(() => another.ready()))
  another.close()
}

function timed(work: () => unknown): number {
  const beganAtMs = performance.now()
  work()
  return performance.now() - beganAtMs
}

const ms = (value: number): string => value.toFixed(1)
/** What a load does by itself it does in every round, so the longest stretch is that of the calmest one. */
const row = (name: string, samples: readonly Stretches[]): readonly string[] => [
  name,
  ms(median(samples.map(({ tookMs }) => tookMs))),
  ms(median(samples.map(({ cpuMs }) => cpuMs))),
  ms(Math.min(...samples.map(({ wallMs }) => wallMs))),
  ms(Math.min(...samples.map(({ workMs }) => workMs))),
]
printTable(
  `${SERVICES} services of 2 to 3 rules, in a list; ${LIMITERS} of them have a limiter when all change`,
  ["", "ms", "CPU ms", "longest stretch", "of work"],
  [
    ["first document of the process", ms(firstMs), "", ms(firstMs), ""],
    row("first load", loads),
    row("poll, nothing changed", unchanged),
    row("poll, all changed", changed),
  ],
)

// Nothing of a limiter holds the process.
const held = setInterval(() => {}, 60_000)
const ways: readonly Way[] = ["poll", "refresh"]
const latencies = new Map<Way, readonly number[]>()
for (const way of ways) latencies.set(way, await changeToEnforcement(way, INSTANCES, quick ? 2 : 10, POLL_MS))
clearInterval(held)
const at = (values: readonly number[] = [], share: number): number =>
  values[Math.ceil(values.length * share) - 1] ?? Number.NaN
printTable(
  `from a change to the first decision by it, ${INSTANCES} instances that poll each ${POLL_MS} ms`,
  ["", "median", "p99", "most"],
  ways.map((way) => [way, ...[0.5, 0.99, 1].map((share) => ms(at(latencies.get(way), share)))]),
)

console.log()
printWanted(`${SERVICES} services load, in ms`, loadMs, loadMs < 2_000, "below 2000")
printWanted(`${SERVICES} services take, in MB of heap`, heapMb, heapMb < 20, "below 20")
const longest = Math.max(
  ...[loads, unchanged, changed].map((samples) => Math.min(...samples.map(({ workMs }) => workMs))),
)
printWanted("longest stretch of parsing, compiling and swapping, in ms", longest, longest <= 5, "at most 5")
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
  const figures = { firstMs, loadMs, heapMb, loads, unchanged, changed }
  writeFileSync(
    json,
    JSON.stringify({ machine, ...figures, latencies: Object.fromEntries(latencies) }, null, 2),
  )
}
