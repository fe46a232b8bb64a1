import { answerTasks } from "../contender-process.ts"
import type { Contender, Setup } from "./contender.ts"
import { CONTENDERS } from "./contenders.ts"
import { costOfKeys, drive, quantile } from "./drive.ts"
import { type Described, sequenceOf, WORKLOADS, type Workload } from "./workloads.ts"

/** A round of load. The first task creates the contender for its workload. */
export interface Task {
  readonly port: number
  readonly workload: Workload
  readonly inFlight: number
  /** Counts each client once. The range includes its first number but not its second. */
  readonly fill?: readonly [number, number]
  /** Milliseconds of load, used unless `fill` or `requests` is given. */
  readonly forMs?: number
  /** Number of requests, used unless `fill` is given. */
  readonly requests?: number
  /** Seed for the sequence of clients. */
  readonly seed?: number
}

/** The result of a round. CPU times are per decision. */
export interface Sample {
  readonly decisions: number
  readonly wallMs: number
  readonly perSecond: number
  /** CPU time of the process, without the time for creating the key. */
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
    // A few decisions miss the timeout on a busy machine. Ignore these failures if they are at most one percent.
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
  if (kind === undefined) throw new Error(`unknown contender: ${process.argv[2]}`)
  const { limit, windowMs, isStacked, ofService }: Described = WORKLOADS[workload]
  const windows = isStacked ? [1_000, 60_000, windowMs] : [windowMs]
  const limits: Setup["limits"][number][] = windows.map((ms) => ({ limit, windowMs: ms }))
  if (ofService !== undefined) limits.push({ limit: ofService, windowMs: 1_000, isOfService: true })
  return kind.create({ port, limits })
}
