import { setImmediate } from "node:timers/promises"
import { freshAddress } from "../clients/addresses.ts"
import { answerTasks } from "../contender-process.ts"
import { CONTENDERS, type Contender } from "./contenders.ts"
import { NO_LIMIT, REFUSED_KEYS, sequenceOf, type Workload } from "./workloads.ts"

export interface Round {
  readonly workload: Workload
  readonly keys: number
  readonly calls: number
  readonly seed: number
}

/** Nanoseconds per call, including the time for creating its key. */
export interface Sample {
  /** CPU time of the whole process, including garbage collection and compilation in other threads. */
  readonly cpuNs: number
  readonly wallNs: number
  /** CPU time for creating the key. */
  readonly keyNs: number
}

const contenders = new Map<string, Contender>()

answerTasks<Round>(async ({ workload, keys, calls, seed }): Promise<Sample> => {
  const sequence = sequenceOf(workload, keys, calls, seed)
  const contender = await contenderFor(workload)
  const keyNs = measureKeys(sequence)
  const cpuBefore = process.cpuUsage()
  const wallBefore = performance.now()
  if (contender.answers === "at-once") countAtOnce(contender, sequence)
  else await countLater(contender, sequence)
  const wallMs = performance.now() - wallBefore
  const { user, system } = process.cpuUsage(cpuBefore)
  return {
    cpuNs: ((user + system) * 1e3) / sequence.length,
    wallNs: (wallMs * 1e6) / sequence.length,
    keyNs,
  }
})

/**
 * Returns the contender for a workload. Workloads with a million keys share one contender, and each other workload
 * uses its own.
 */
async function contenderFor(workload: Workload): Promise<Contender> {
  const name = workload === "hot" || workload === "refused" ? workload : "filled"
  const known = contenders.get(name)
  if (known !== undefined) return known
  const create = CONTENDERS[process.argv[2] ?? ""]
  if (create === undefined) throw new Error(`unknown contender: ${process.argv[2]}`)
  const contender = create(name === "refused" ? 1 : NO_LIMIT)
  contenders.set(name, contender)
  // Wait for a turn of the event loop, because a server is also set up in an earlier turn than its first request.
  await setImmediate()
  // Use up the limit of each client before the measurement.
  if (name === "refused")
    await countLater(
      contender,
      Uint32Array.from({ length: REFUSED_KEYS }, (_, index) => index),
    )
  return contender
}

function countAtOnce({ count }: Contender, sequence: Uint32Array): void {
  for (const index of sequence) count(freshAddress(index))
}

async function countLater({ count }: Contender, sequence: Uint32Array): Promise<void> {
  for (const index of sequence) {
    try {
      await count(freshAddress(index))
    } catch {
      // rate-limiter-flexible rejects its promise when it refuses a request.
    }
  }
}

function measureKeys(sequence: Uint32Array): number {
  const before = process.cpuUsage()
  let characters = 0
  for (const index of sequence) characters += freshAddress(index).length
  const { user, system } = process.cpuUsage(before)
  if (characters === 0) throw new Error("No key has any text")
  return ((user + system) * 1e3) / sequence.length
}
