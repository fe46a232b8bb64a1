import { writeFileSync } from "node:fs"
import { setTimeout } from "node:timers/promises"
import { CLIENTS, PACED, PERSISTENT } from "./client/contenders.ts"
import {
  CALLS,
  type Contender,
  PROCESSES,
  type Sample,
  type Scenario,
  startClient,
  WORKERS,
} from "./client/measure.ts"
import { readCommandLine } from "./command-line.ts"
import { describeMachine, printMachine } from "./report/machine.ts"
import { median, rotated } from "./report/statistics.ts"
import { printTable, printWanted } from "./report/table.ts"

// Measures clients that share the limit of a Sluice server: how many of their requests are refused, and how long the
// clients take. bench/README.md explains the output.

const TEN_SECONDS = { limit: 100, windowMs: 10_000, algorithm: "sliding-window" } as const
const FIVE_SECONDS = { ...TEN_SECONDS, windowMs: 5_000 } as const
const BUCKET = { ...FIVE_SECONDS, algorithm: "token-bucket" } as const
const TWO_SECONDS = { ...TEN_SECONDS, windowMs: 2_000 } as const

/** The wanted times as multiples of the time of axios-retry: for windows of at least 5 s, and for shorter windows. */
const [WANTED_TIMES, WANTED_TIMES_SHORT] = [1.1, 1.35]
const LONG_MS = 5_000
const WANTED_PERCENT_REFUSED = 1
const WANTED_LAST_TO_FIRST = 1.15

/**
 * The number of windows between the starts of two clients. Each client starts near the beginning of a window of its
 * server, because the rest of that window counts toward the run's time. Each client starts a little later in the
 * window than the client before, so that its first calls do not wait for another client's burst. Other clients retry
 * in bursts after whole seconds.
 */
const STAGGER_WINDOWS = 1.04

const { quick, json, only } = readCommandLine()
const rounds = quick ? 1 : 5
const names = Object.keys(CLIENTS).filter((name) => name.includes(only))
/** The limits of a lane are measured one after the other. Lanes run at the same time, because clients mostly sleep. */
const lanes: readonly (readonly Scenario[])[] = quick
  ? [[FIVE_SECONDS], [BUCKET]]
  : [[TEN_SECONDS], [FIVE_SECONDS, BUCKET, TWO_SECONDS]]

const machine = describeMachine(["@sluice/client", "axios", "axios-retry", "undici", "bottleneck"])
printMachine(machine)
const samples = new Map<Scenario, Map<string, Sample[]>>(
  lanes.flat().map((scenario) => [scenario, new Map(names.map((name) => [name, []]))]),
)
await Promise.all(lanes.map(measureLane))
for (const [scenario, byClient] of samples) print(scenario, byClient)
console.log()
for (const [scenario, byClient] of samples) printGoals(scenario, byClient)
if (json !== undefined) {
  const results = [...samples].map(([scenario, byClient]) => ({
    ...scenario,
    samples: Object.fromEntries(byClient),
  }))
  writeFileSync(json, `${JSON.stringify({ machine, rounds, results }, null, 2)}\n`)
}

async function measureLane(scenarios: readonly Scenario[]): Promise<void> {
  const contenders: Contender[] = []
  try {
    for (const name of names) contenders.push(await startClient(name))
    for (let round = 0; round < rounds; round++) {
      for (const scenario of scenarios) {
        const { windowMs } = scenario
        const untilWindowMs = windowMs - (Date.now() % windowMs)
        const measured = rotated(contenders, round).map(async ({ name, measure }, index) => {
          await setTimeout(untilWindowMs + index * STAGGER_WINDOWS * windowMs)
          const sample = await measure(scenario)
          samples.get(scenario)?.get(name)?.push(sample)
        })
        await Promise.all(measured)
      }
    }
  } finally {
    await Promise.all(contenders.map((contender) => contender.stop()))
  }
}

function print(scenario: Scenario, byClient: ReadonlyMap<string, readonly Sample[]>): void {
  const header = ["client", "sent", "refused", "of sent", "failed", "time", "first process", "p99 of a call"]
  const rows = [...byClient].map(([name, list]) => {
    const of = (read: (sample: Sample) => number): number => median(list.map(read))
    const seconds = (read: (sample: Sample) => number): string => `${(of(read) / 1_000).toFixed(1)} s`
    return [
      name,
      ...[of(({ sent }) => sent), of(({ refused }) => refused)].map((count) => count.toFixed(0)),
      `${of(percentRefused).toFixed(1)} %`,
      of(({ failures }) => failures.length).toFixed(0),
      ...[seconds(({ wallMs }) => wallMs), seconds(({ firstMs }) => firstMs), seconds(({ p99Ms }) => p99Ms)],
    ]
  })
  const runs = rounds === 1 ? "one run" : `medians of ${rounds} runs`
  const load = `${PROCESSES} processes with ${WORKERS} workers and ${CALLS} calls each`
  printTable(`${nameOf(scenario)}: ${load}; ${runs}`, header, rows)
}

function printGoals(scenario: Scenario, byClient: ReadonlyMap<string, readonly Sample[]>): void {
  const list = byClient.get(PACED)
  const persistent = byClient.get(PERSISTENT)
  if (list === undefined) return
  const name = nameOf(scenario)
  const isLong = scenario.windowMs >= LONG_MS
  if (isLong) {
    const percent = median(list.map(percentRefused))
    const wanted = `at most ${WANTED_PERCENT_REFUSED}`
    printWanted(`${name}, percent refused`, percent, percent <= WANTED_PERCENT_REFUSED, wanted)
    const failed = Math.max(...list.map(({ failures }) => failures.length))
    printWanted(`${name}, failed calls in any run`, failed, failed === 0, "0")
    const apart = median(list.map(({ wallMs, firstMs }) => wallMs / firstMs))
    const isFair = apart <= WANTED_LAST_TO_FIRST
    printWanted(`${name}, last process times the first`, apart, isFair, `at most ${WANTED_LAST_TO_FIRST}`)
  }
  if (persistent === undefined) return
  const [own, others] = [list, persistent].map((each) => median(each.map(({ wallMs }) => wallMs)))
  const times = (own as number) / (others as number)
  const wanted = isLong ? WANTED_TIMES : WANTED_TIMES_SHORT
  printWanted(`${name}, times the time of ${PERSISTENT}`, times, times <= wanted, `at most ${wanted}`)
}

function percentRefused({ sent, refused }: Sample): number {
  return (100 * refused) / sent
}

function nameOf({ limit, windowMs, algorithm }: Scenario): string {
  return `${limit} per ${windowMs / 1_000} s, ${algorithm.replace("-", " ")}`
}
