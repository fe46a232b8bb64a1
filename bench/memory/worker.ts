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

/** Bytes a key at `keys` keys, and the most at any number of them from a tenth up. */
export interface Bytes {
  readonly atAll: number
  readonly atMost: number
}

/** Milliseconds; the sweep only where the contender can be told the time. */
export interface Holds {
  readonly insertMs: number
  readonly sweepMs?: number
  /** Counters that the sweep left of those that had expired. */
  readonly left?: number
}

const STEPS = 20
const START_MS = 1_800_000_000_000

answerTasks<Task>(({ measure, keys }) => (measure === "bytes" ? measureBytes(keys) : measureHolds(keys)))

function create(maxKeys: number): Contender {
  const contender = CONTENDERS[process.argv[2] ?? ""]?.(maxKeys)
  if (contender === undefined) throw new Error(`${process.argv[2]} is no contender`)
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
  // Used once more, so that it is not garbage before the last look.
  contender.count(freshAddress(0), START_MS)
  return { atAll, atMost }
}

async function measureHolds(keys: number): Promise<Holds> {
  const watch = watchHolds()
  // Compiled before it is measured.
  await fill(create(keys), 0, 50_000, START_MS, watch.measure)
  await watch.longest()

  await fill(create(keys), 0, keys, START_MS, watch.measure)
  const insertMs = await watch.longest()

  // Room for twice as many, so that expired counters go by sweeping and not to make room.
  const expiring = create(2 * keys)
  const { sweep, size } = expiring
  if (size === undefined) return { insertMs }
  await fill(expiring, 0, keys, START_MS, (count) => count())
  const laterMs = START_MS + 3 * WINDOW_MS
  if (sweep !== undefined) {
    watch.measure(() => sweep(laterMs))
    return { insertMs, sweepMs: await watch.longest(), left: size() }
  }
  // It sweeps as other clients are counted: as many as had expired.
  await fill(expiring, keys, 2 * keys, laterMs, watch.measure)
  return { insertMs, sweepMs: await watch.longest(), left: size() - keys }
}

/** One turn of the event loop for every thousand requests, so that promises of the peers do not pile up. */
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
