import { setImmediate } from "node:timers/promises"
import { freshAddress } from "../clients/addresses.ts"
import { answerTasks } from "../contender-process.ts"
import { CONTENDERS, type Contender, WINDOW_MS } from "./contenders.ts"
import { watchHolds } from "./holds.ts"
import { memoryInUse } from "./in-use.ts"

export interface Task {
  readonly measure: "bytes" | "holds"
  readonly keys: number
}

/** Bytes per key at the full number of keys, and the maximum over all measured numbers from a tenth of them. */
export interface Bytes {
  readonly atAll: number
  readonly atMost: number
}

/** The longest holds in milliseconds. The sweep is measured only if the contender accepts a simulated time. */
export interface Holds {
  readonly insertMs: number
  readonly sweepMs?: number
  /** Number of expired counters that the sweep has not removed. */
  readonly left?: number
}

const STEPS = 20
const START_MS = 1_800_000_000_000

answerTasks<Task>(({ measure, keys }) => (measure === "bytes" ? measureBytes(keys) : measureHolds(keys)))

function create(maxKeys: number): Contender {
  const contender = CONTENDERS[process.argv[2] ?? ""]?.(maxKeys)
  if (contender === undefined) throw new Error(`unknown contender: ${process.argv[2]}`)
  return contender
}

async function measureBytes(keys: number): Promise<Bytes> {
  const contender = create(keys)
  const before = await memoryInUse()
  let atMost = 0
  let atAll = 0
  for (let step = 1; step <= STEPS; step++) {
    const filled = (keys * step) / STEPS
    for (let index = (keys * (step - 1)) / STEPS; index < filled; index++)
      contender.count(freshAddress(index), START_MS)
    atAll = ((await memoryInUse()) - before) / filled
    if (step >= STEPS / 10) atMost = Math.max(atMost, atAll)
  }
  // Use the contender after the last measurement, so that it cannot be collected as garbage before it.
  contender.count(freshAddress(0), START_MS)
  return { atAll, atMost }
}

async function measureHolds(keys: number): Promise<Holds> {
  const watch = watchHolds()
  // Let V8 compile the code before it is measured.
  await fill(create(keys), 0, 50_000, START_MS, watch.measure)
  await watch.longest()

  await fill(create(keys), 0, keys, START_MS, watch.measure)
  const insertMs = await watch.longest()

  // The bound is twice as large, so that expired counters are removed by sweeping and not by eviction.
  const expiring = create(2 * keys)
  const { sweep, size } = expiring
  if (size === undefined) return { insertMs }
  await fill(expiring, 0, keys, START_MS, (count) => count())
  const laterMs = START_MS + 3 * WINDOW_MS
  if (sweep !== undefined) {
    watch.measure(() => sweep(laterMs))
    return { insertMs, sweepMs: await watch.longest(), left: size() }
  }
  // The store sweeps while other clients are counted. Count as many clients as have expired.
  await fill(expiring, keys, 2 * keys, laterMs, watch.measure)
  return { insertMs, sweepMs: await watch.longest(), left: size() - keys }
}

/**
 * Counts a range of clients. After every thousand clients, waits for a turn of the event loop, so that promises do
 * not accumulate.
 */
async function fill(
  contender: Contender,
  from: number,
  to: number,
  nowMs: number,
  measure: (act: () => void) => void,
): Promise<void> {
  for (let index = from; index < to; index++) {
    const key = freshAddress(index)
    measure(() => contender.count(key, nowMs))
    if (index % 1000 === 999) await setImmediate()
  }
}
