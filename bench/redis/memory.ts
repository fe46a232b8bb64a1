import { setTimeout } from "node:timers/promises"
import { startContender } from "../contender-process.ts"
import type { Task } from "../load/worker.ts"
import { WORKLOADS, type Workload } from "../load/workloads.ts"
import { median } from "../report/statistics.ts"
import { printTable, printWanted } from "../report/table.ts"
import { OURS, PEER } from "./cases.ts"
import { type RedisServer, usedMemory } from "./server.ts"

const MOST_OF_PEER = 1.25
const IN_FLIGHT = 64
/** Time in which Redis finishes growing its tables. */
const SETTLED_MS = 500
const LOOKED_AT = 50

const TRACKED: readonly { readonly name: string; readonly workload: Workload }[] = [
  { name: OURS, workload: "tracked, two windows" },
  { name: PEER, workload: "tracked" },
  { name: "rate-limit-redis", workload: "tracked" },
]

export interface MemoryResult {
  readonly name: string
  /** Growth of Redis' memory per client. */
  readonly bytes: number
  /** The result of `MEMORY USAGE` for a key, which does not include the expiry. */
  readonly keyBytes: number
}

/** Measures the bytes in Redis per tracked client. */
export async function measureMemory(server: RedisServer, clients: number): Promise<readonly MemoryResult[]> {
  const results: MemoryResult[] = []
  for (const { name, workload } of TRACKED) results.push(await measure(server, clients, name, workload))
  return results
}

export function printMemory(results: readonly MemoryResult[], clients: number): void {
  printTable(
    `memory in Redis, ${clients} clients with the same addresses; ours counted in two windows`,
    ["", "bytes a client", "MEMORY USAGE of a key"],
    results.map(({ name, bytes, keyBytes }) => [name, bytes.toFixed(1), keyBytes.toFixed(0)]),
  )
  console.log()
  const [ours, peer] = results
  const ratio = (ours?.bytes ?? Number.NaN) / (peer?.bytes ?? Number.NaN)
  printWanted(`bytes a client, of ${PEER}'s`, ratio, ratio <= MOST_OF_PEER, `at most ${MOST_OF_PEER}`)
}

async function measure(
  server: RedisServer,
  clients: number,
  name: string,
  workload: Workload,
): Promise<MemoryResult> {
  const contender = startContender(new URL("../load/worker.ts", import.meta.url), name)
  const { windowMs } = WORKLOADS[workload]
  const fill = (to: number) =>
    contender.ask({ port: server.port, workload, inFlight: IN_FLIGHT, fill: [0, to] } satisfies Task)
  // Windows begin at multiples of their length since 1970.
  const nextWindow = () => setTimeout(windowMs - (Date.now() % windowMs) + 10)
  try {
    // Create connections, buffers and scripts before the memory is measured.
    await fill(1_000)
    await server.command("FLUSHALL", "SYNC")
    const before = await usedMemory(server)
    const windows = workload === "tracked, two windows" ? 2 : 1
    for (let window = 0; window < windows; window++) {
      if (windows > 1) await nextWindow()
      await fill(clients)
    }
    await setTimeout(SETTLED_MS)
    const bytes = ((await usedMemory(server)) - before) / clients
    const keys = Number(await server.command("DBSIZE"))
    if (keys !== clients) throw new Error(`${name} has ${keys} keys for ${clients} clients`)
    const usages: number[] = []
    for (let i = 0; i < LOOKED_AT; i++) {
      const key = String(await server.command("RANDOMKEY"))
      usages.push(Number(await server.command("MEMORY", "USAGE", key)))
    }
    return { name, bytes, keyBytes: median(usages) }
  } finally {
    await contender.stop()
  }
}
