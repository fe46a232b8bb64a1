import { startContender } from "../contender-process.ts"
import { CONTENDERS } from "../memory/contenders.ts"
import type { Bytes, Task } from "../memory/worker.ts"
import { measureMemory } from "../redis/memory.ts"
import { exactly, type Measurement } from "./measurement.ts"
import type { Run } from "./settings.ts"

const OURS = "sluice"

/** Measures the bytes per client, in the memory of a process and in Redis. */
export async function measureBytes({ redis, settings }: Run): Promise<Measurement[]> {
  const { clients, clientsInRedis } = settings
  const measurements: Measurement[] = []
  const add = (workload: string, contender: string, bytes: number): void => {
    const isOurs = contender.startsWith(OURS)
    measurements.push({
      part: "memory",
      workload,
      contender,
      isOurs,
      quantity: "bytes a client",
      ...exactly(bytes),
    })
  }
  for (const name of Object.keys(CONTENDERS)) {
    const contender = startContender(new URL("../memory/worker.ts", import.meta.url), name)
    try {
      const { atAll } = await contender.ask<Bytes>({ measure: "bytes", keys: clients } satisfies Task)
      add(`in process, ${clients} clients`, name, atAll)
    } finally {
      await contender.stop()
    }
  }
  for (const { name, bytes } of await measureMemory(redis, clientsInRedis))
    add(`in Redis, ${clientsInRedis} clients`, name, bytes)
  return measurements
}
