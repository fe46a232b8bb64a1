import { setTimeout } from "node:timers/promises"
import { startContender } from "../contender-process.ts"
import { pairedRatios, type Spread, spreadOf } from "../report/statistics.ts"
import { printTable, printWanted } from "../report/table.ts"
import type { FrozenSample, FrozenTask } from "./frozen-worker.ts"
import type { RedisServer } from "./server.ts"

const DEADLINE_MS = 50
const MOST_LATE_MS = 10
const MOST_OF_MEMORY = 2

const FREEZES_AFTER_MS = 1_000
const OPEN_AFTER_MS = 1_500
const FOR_MS = 3_500

export interface FrozenResult {
  readonly frozen: readonly FrozenSample[]
  readonly memory: readonly FrozenSample[]
}

/**
 * Freezes Redis under load. Measures how late decisions are, and how long they take while the circuit breaker is open.
 */
export async function measureFrozen(server: RedisServer, rounds: number): Promise<FrozenResult> {
  const frozen: FrozenSample[] = []
  const memory: FrozenSample[] = []
  for (let round = 0; round < rounds; round++) {
    frozen.push(await measure(server))
    memory.push(await measure(undefined))
  }
  const row = (name: string, samples: readonly FrozenSample[]): string[] => {
    const of = (figure: keyof FrozenSample): Spread => spreadOf(samples.map((sample) => sample[figure]))
    return [
      name,
      ...[of("degraded").median, of("worstMs").median, of("worstMs").most].map((value) => value.toFixed(1)),
      ...[of("p50AfterOpenMs").median, of("p999AfterOpenMs").median].map((ms) => (ms * 1e3).toFixed(1)),
      ...[of("p999AfterOpenMs").least, of("p999AfterOpenMs").most].map((ms) => (ms * 1e3).toFixed(1)),
    ]
  }
  printTable(
    `decide with 64 in flight, Redis frozen after ${FREEZES_AFTER_MS} ms, and on the memory store; ${rounds} rounds`,
    ["", "degraded", "longest ms", "most", "p50 us, open", "p99.9 us, open", "from", "to"],
    [row("sluice decide, frozen", frozen), row("sluice decide, memory", memory)],
  )
  console.log()
  const latestMs = Math.max(...frozen.map((sample) => sample.worstMs)) - DEADLINE_MS
  const late = `ms after the deadline of ${DEADLINE_MS} ms, the latest decision`
  printWanted(`frozen: ${late}`, latestMs, latestMs <= MOST_LATE_MS, `at most ${MOST_LATE_MS}`)
  const times = spreadOf(
    pairedRatios(
      frozen.map((sample) => sample.p999AfterOpenMs),
      memory.map((sample) => sample.p999AfterOpenMs),
    ),
  ).median
  const wanted = `at most ${MOST_OF_MEMORY}`
  printWanted("frozen, breaker open: p99.9, times the memory store's", times, times <= MOST_OF_MEMORY, wanted)
  return { frozen, memory }
}

async function measure(server: RedisServer | undefined): Promise<FrozenSample> {
  const name = server === undefined ? "memory" : "frozen"
  const contender = startContender(new URL("./frozen-worker.ts", import.meta.url), name)
  try {
    const task: FrozenTask = { port: server?.port, forMs: 200, openAfterMs: 0 }
    // Warm up while Redis still responds.
    await contender.ask<FrozenSample>(task)
    const pending = contender.ask<FrozenSample>({ ...task, forMs: FOR_MS, openAfterMs: OPEN_AFTER_MS })
    await setTimeout(FREEZES_AFTER_MS)
    server?.freeze()
    const sample = await pending
    if (server !== undefined && sample.degradedAfterOpen < sample.afterOpen)
      throw new Error(`${sample.afterOpen - sample.degradedAfterOpen} decisions of a frozen Redis`)
    return sample
  } finally {
    server?.thaw()
    await contender.stop()
  }
}
