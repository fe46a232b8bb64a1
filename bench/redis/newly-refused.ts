import { startContender } from "../contender-process.ts"
import type { Sample, Task } from "../load/worker.ts"
import { median } from "../report/statistics.ts"
import { printTable, printWanted } from "../report/table.ts"
import { BLOCK, DECIDE, OURS, PEER } from "./cases.ts"
import type { RedisServer } from "./server.ts"

const BATCH = 10_000
const BATCHES = 10
const IN_FLIGHT = 256
/** The batches that are compared with the last batches. All earlier batches are a warm-up. */
const FIRST = [1, 4] as const
const MOST_TIMES = 1.5

export interface NewlyRefused {
  readonly name: string
  /** Node's CPU time for a client's first refusal, for each batch. Each batch adds more refused clients. */
  readonly nodeUs: readonly number[]
}

/** Measures whether a client's first refusal becomes more expensive while 100,000 other clients are refused. */
export async function measureNewlyRefused(
  server: RedisServer,
  only: string,
): Promise<readonly NewlyRefused[]> {
  const results: NewlyRefused[] = []
  for (const name of [OURS, DECIDE, PEER, BLOCK]) {
    if (name === OURS || name.includes(only)) results.push(await measure(server, name))
  }
  printTable(
    `a client refused for the first time, after ${BATCH} to ${BATCH * BATCHES} others; ${IN_FLIGHT} in flight`,
    ["", "Node us, few", "many", "times"],
    results.map((result) => {
      const { few, many } = ends(result)
      return [result.name, few.toFixed(2), many.toFixed(2), (many / few).toFixed(2)]
    }),
  )
  console.log()
  for (const result of results) {
    if (result.name !== OURS && result.name !== DECIDE) continue
    const { few, many } = ends(result)
    const what = `newly refused, ${result.name}: cost with ${BATCH * BATCHES} refused, times the cost with few`
    printWanted(what, many / few, many / few <= MOST_TIMES, `at most ${MOST_TIMES}`)
  }
  return results
}

async function measure(server: RedisServer, name: string): Promise<NewlyRefused> {
  await server.command("FLUSHALL", "SYNC")
  const contender = startContender(new URL("../load/worker.ts", import.meta.url), name)
  const nodeUs: number[] = []
  try {
    for (let batch = 0; batch < BATCHES; batch++) {
      const task: Task = {
        port: server.port,
        workload: "refused",
        inFlight: IN_FLIGHT,
        fill: [batch * BATCH, (batch + 1) * BATCH],
      }
      const admitted = await contender.ask<Sample>(task)
      const refused = await contender.ask<Sample>(task)
      if (admitted.refused !== 0 || refused.refused + refused.failed !== BATCH)
        throw new Error(`${name}: ${admitted.refused}, then ${refused.refused} of ${BATCH} were refused`)
      // This contender blocks a client at its last admitted request, not at its first refused request.
      nodeUs.push(name === BLOCK ? admitted.nodeUs : refused.nodeUs)
    }
    return { name, nodeUs }
  } finally {
    await contender.stop()
  }
}

function ends({ nodeUs }: NewlyRefused): { few: number; many: number } {
  return { few: median(nodeUs.slice(...FIRST)), many: median(nodeUs.slice(FIRST[0] - FIRST[1])) }
}
