import { type ContenderProcess, startContender } from "../contender-process.ts"
import { startServer, usageOf } from "../redis/server.ts"
import { pairedRatios, rotated, type Spread, spreadOf } from "../report/statistics.ts"
import { printTable, printWanted } from "../report/table.ts"
import { KINDS } from "./kinds.ts"
import type { MemoryTask, RedisTask, SpeedSample } from "./speed-worker.ts"

const TWO_WINDOWS = "sliding-window"
const STRICT = "sliding-window-strict"
const LEAST = 0.8
/** A sixth of the requests in a window. */
const MEMORY_CALLS = 100_000

interface Sample extends SpeedSample {
  /** CPU time of Redis per decision. 0 in memory. */
  readonly redisUs: number
}

interface Workload {
  readonly name: string
  readonly says: string
  /** Whether there is a target for the strict window in this workload. */
  readonly isWanted: boolean
  /** Returns the task of a round: some milliseconds in Redis, or some calls in memory. */
  task(round: number, isQuick: boolean, port: number): MemoryTask | RedisTask
}

const inMemory = (name: string, clients: number, aWindow: number): Workload => ({
  name,
  says: `${clients} clients, each ${aWindow} times a minute, 60 sub-windows where there are any`,
  isWanted: false,
  task: (round, isQuick) => ({
    store: "memory",
    clients,
    aWindow,
    // The first round fills the window.
    calls: isQuick ? 30_000 : round === 0 ? MEMORY_CALLS * 6 : MEMORY_CALLS,
    seed: round + 1,
  }),
})

const WORKLOADS: readonly Workload[] = [
  inMemory("memory", 10_000, 60),
  inMemory("memory, often", 1_000, 600),
  {
    name: "Redis, a minute",
    says: "take, 64 in flight, 10,000 clients that keep asking, all alike",
    isWanted: true,
    task: (round, isQuick, port) => ({
      store: "redis",
      port,
      clients: 10_000,
      windowMs: 60_000,
      // Time has passed since this contender's last turn. During the warm-up nearly every client sends a request
      // again, so the pause does not affect the measured state.
      warmMs: isQuick ? 200 : 1_000,
      forMs: isQuick ? 200 : 1_500,
      seed: round + 1,
    }),
  },
  {
    name: "Redis, 1.2 seconds",
    says: "the same with 1,000 clients: each request comes in another of 60 sub-windows than the last",
    isWanted: false,
    task: (round, isQuick, port) => ({
      store: "redis",
      port,
      clients: 1_000,
      windowMs: 1_200,
      // The warm-up lasts a whole window, so that all sub-windows are in use.
      warmMs: isQuick ? 200 : 1_200,
      forMs: isQuick ? 200 : 1_500,
      seed: round + 1,
    }),
  },
]

type Measured = ReadonlyMap<string, readonly Sample[]>

/**
 * Measures `take` of each algorithm in memory and through Redis, as a ratio to the two-window counter in the same
 * round.
 */
export async function measureSpeed(isQuick: boolean): Promise<unknown> {
  const results: { readonly workload: string; readonly samples: Record<string, readonly Sample[]> }[] = []
  const server = await startServer()
  try {
    for (const workload of WORKLOADS) {
      await server.command("FLUSHALL", "SYNC")
      const processes = KINDS.map(({ name }) =>
        startContender(new URL("./speed-worker.ts", import.meta.url), name),
      )
      try {
        const samples = await measureRounds(processes, workload, isQuick ? 2 : 7, isQuick, server)
        print(workload, samples)
        results.push({ workload: workload.name, samples: Object.fromEntries(samples) })
        if (!workload.isWanted) continue
        // Measure only the two compared kinds, in more rounds, because their ratio is compared with a target and the
        // machine's speed changes within seconds.
        const pair = processes.filter(({ name }) => name === TWO_WINDOWS || name === STRICT)
        const pairs = await measureRounds(pair, workload, isQuick ? 4 : 21, isQuick, server)
        printPair(workload, pairs)
        results.push({ workload: `${workload.name}, the two`, samples: Object.fromEntries(pairs) })
      } finally {
        await Promise.all(processes.map((one) => one.stop()))
      }
    }
  } finally {
    await server.stop()
  }
  return results
}

/** Measures the processes in turn, after a warm-up round. Each round begins with a different process. */
async function measureRounds(
  processes: readonly ContenderProcess[],
  workload: Workload,
  rounds: number,
  isQuick: boolean,
  server: Parameters<typeof usageOf>[0],
): Promise<Measured> {
  const samples = new Map<string, Sample[]>(processes.map(({ name }) => [name, []]))
  for (let round = 0; round <= rounds; round++) {
    for (const contender of rotated(processes, round)) {
      const sample = await measureRound(contender, workload.task(round, isQuick, server.port), server)
      if (round > 0) samples.get(contender.name)?.push(sample)
    }
  }
  return samples
}

async function measureRound(
  contender: ContenderProcess,
  task: MemoryTask | RedisTask,
  server: Parameters<typeof usageOf>[0],
): Promise<Sample> {
  const before = await usageOf(server)
  const sample = await contender.ask<SpeedSample>(task)
  const after = await usageOf(server)
  // The CPU time of Redis includes the warm-up, which makes the same number of decisions per second.
  const share = task.store === "redis" ? task.forMs / (task.forMs + task.warmMs) : 0
  return { ...sample, redisUs: ((after.cpuUs - before.cpuUs) * share) / sample.decisions }
}

function print({ name, says }: Workload, measured: Measured): void {
  const rounds = measured.get(TWO_WINDOWS)?.length
  printTable(
    `${name}: ${says}; ${rounds} rounds in turn, a process each`,
    ["", "takes/s", "times two windows", "from", "to", "Node us", "Redis us"],
    [...measured.entries()].map(([of, samples]) => {
      const middle = (figure: (sample: Sample) => number) => spreadOf(samples.map(figure)).median
      const { median, least, most } = timesTwoWindows(measured, of)
      return [
        of,
        middle(rateOf).toFixed(0),
        ...[median, least, most].map((ratio) => ratio.toFixed(2)),
        middle((sample) => sample.nodeUs).toFixed(2),
        middle((sample) => sample.redisUs).toFixed(2),
      ]
    }),
  )
}

function printPair(workload: Workload, measured: Measured): void {
  print({ ...workload, name: `${workload.name}, the two` }, measured)
  const { median } = timesTwoWindows(measured, STRICT)
  console.log()
  printWanted(
    `${workload.name}: ${STRICT}, times ${TWO_WINDOWS}`,
    median,
    median >= LEAST,
    `at least ${LEAST}`,
  )
}

function timesTwoWindows(measured: Measured, of: string): Spread {
  const rates = (name: string) => (measured.get(name) ?? []).map(rateOf)
  return spreadOf(pairedRatios(rates(of), rates(TWO_WINDOWS)))
}

/**
 * Returns the decisions per second. In memory, the number is computed from CPU time, which other programs on the
 * machine do not affect. Through Redis, it is computed from elapsed time.
 */
function rateOf({ redisUs, nodeUs, perSecond }: Sample): number {
  return redisUs === 0 ? 1e6 / nodeUs : perSecond
}
