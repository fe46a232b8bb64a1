import { setImmediate } from "node:timers/promises"
import { memoryStore } from "@sluice/core"
import { freshAddress } from "../clients/addresses.ts"
import { answerTasks } from "../contender-process.ts"
import { memoryInUse } from "../memory/in-use.ts"
import { START_MS } from "./counter.ts"
import { type Filling, takesOf, weighedPolicy } from "./filling.ts"
import { kindOf } from "./kinds.ts"

/** The number of clients, and how full each client's counter is. */
export interface WeighTask {
  readonly clients: number
  readonly filling: Filling
}

const TURN = 10_000

const kind = kindOf(process.argv[2] ?? "")

/** Returns the bytes per client, inside and outside the heap. */
answerTasks<WeighTask>(async ({ clients, filling }): Promise<number> => {
  const policy = weighedPolicy(kind)
  let nowMs = START_MS
  const store = memoryStore({ maxKeys: clients, clock: { now: () => nowMs } })
  const before = await memoryInUse()
  for (const { afterMs, cost } of takesOf(kind, filling)) {
    nowMs = START_MS + afterMs
    for (let index = 0; index < clients; index++) {
      if (index % TURN === 0) await setImmediate()
      const answer = store.take([{ policy, partition: freshAddress(index), cost, shadow: false }])
      if (answer?.granted !== true) throw new Error(`${kind.name} refused what fits, ${afterMs} ms later`)
    }
  }
  const bytes = ((await memoryInUse()) - before) / clients
  // Use the store after the measurement, so that it cannot be collected as garbage before it.
  if (store.size !== clients) throw new Error(`${kind.name} kept ${store.size} of ${clients} clients`)
  return bytes
})
