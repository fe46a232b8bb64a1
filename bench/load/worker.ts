import { answerTasks } from "../contender-process.ts"
import type { Contender } from "./contender.ts"
import { CONTENDERS } from "./contenders.ts"
import { costOfKeys, drive, quantile } from "./drive.ts"
import { sequenceOf, WORKLOADS, type Workload } from "./workloads.ts"

/** The first task makes the contender, for its workload. */
export interface Task {
  readonly port: number
  readonly workload: Workload
  readonly inFlight: number
  /** Counts the clients from the first number to the second, each once. */
  readonly fill?: readonly [number, number]
  /** Without `fill`: milliseconds of load or, if given, requests; and which of its clients come. */
  readonly forMs?: number
  readonly requests?: number
  readonly seed?: number
}

/** What a contender did, by the decision. */
export interface Sample {
  readonly decisions: number
  readonly wallMs: number
  readonly perSecond: number
  /** Node's CPU, less that of making the key. */
  readonly nodeUs: number
  readonly keyUs: number
  readonly p50Ms: number
  readonly p99Ms: number
  readonly refused: number
  readonly failed: number
}

const SEQUENCE = 2 ** 18

let contender: Contender | undefined

answerTasks<Task>(
  async ({ port, workload, inFlight, fill, forMs = 0, requests, seed = 1 }): Promise<Sample> => {
    contender ??= await create(port, workload)
    const sequence =
      fill === undefined
        ? sequenceOf(workload, requests ?? SEQUENCE, seed)
        : new Uint32Array(fill[1] - fill[0]).map((_, index) => fill[0] + index)
    const keyUs = costOfKeys(sequence)
    const isTimed = fill === undefined && requests === undefined
    const driven = await drive(contender, sequence, inFlight, isTimed ? forMs : undefined)
    const { decisions, wallMs, cpuUs, latenciesMs, refused, failed, firstError } = driven
    // Now and then one is late on a busy machine, and not worth a word.
    if (failed > decisions / 100)
      throw new Error(`${failed} of ${decisions} decisions failed: ${firstError ?? "made without Redis"}`)
    return {
      decisions,
      wallMs,
      perSecond: (decisions * 1e3) / wallMs,
      nodeUs: cpuUs / decisions - keyUs,
      keyUs,
      p50Ms: quantile(latenciesMs, 0.5),
      p99Ms: quantile(latenciesMs, 0.99),
      refused,
      failed,
    }
  },
)

async function create(port: number, workload: Workload): Promise<Contender> {
  const kind = CONTENDERS[process.argv[2] ?? ""]
  if (kind === undefined) throw new Error(`${process.argv[2]} is no contender`)
  const { limit, windowMs, isStacked } = WORKLOADS[workload]
  const windows = isStacked ? [1_000, 60_000, windowMs] : [windowMs]
  return kind.create({ port, limits: windows.map((ms) => ({ limit, windowMs: ms })) })
}
