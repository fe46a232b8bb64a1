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

/** Nanoseconds a call, its key included. */
export interface Sample {
  /** CPU of the whole process: garbage collection and compiling in other threads too. */
  readonly cpuNs: number
  readonly wallNs: number
  /** CPU of making the key alone. */
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

/** The filled one for every workload with known keys, and one each for the others. */
async function contenderFor(workload: Workload): Promise<Contender> {
  const name = workload === "hot" || workload === "refused" ? workload : "filled"
  const known = contenders.get(name)
  if (known !== undefined) return known
  const create = CONTENDERS[process.argv[2] ?? ""]
  if (create === undefined) throw new Error(`${process.argv[2]} is no contender`)
  const contender = create(name === "refused" ? 1 : NO_LIMIT)
  contenders.set(name, contender)
  // A server is put together in a turn of its own, before it gets requests.
  await setImmediate()
  // Each client takes its one unit before anything is measured.
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
      // A refusal: rate-limiter-flexible rejects.
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
