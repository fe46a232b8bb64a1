import { type ContenderProcess, startContender } from "../contender-process.ts"
import { rotated } from "../report/statistics.ts"
import { stayInWindow } from "../time.ts"
import type { Contender } from "./contenders.ts"
import { WINDOW_MS } from "./setup.ts"
import { load } from "./wrk.ts"

export const CONNECTIONS = 64
/** Number of requests after which V8 has compiled the server's code. */
const WARM_AFTER = 20_000
/**
 * A process is measured for a shorter time than this. No window may end in that time, because the next window would
 * admit a request again.
 */
const MEASURED_WITHIN_MS = 60_000

export interface Sample {
  readonly perSecond: number
  readonly p99Ms: number
  /** CPU time of the server's process per request. */
  readonly cpuUs: number
}

/** One round of a contender, and of the bare framework in the same process. */
export interface Round {
  readonly own: Sample
  readonly bare: Sample
}

/** The rounds of each contender, in order. */
export type Measured = ReadonlyMap<Contender, readonly Round[]>

interface Plan {
  /** Number of processes for each contender, which run one after the other. */
  readonly starts: number
  /** Number of rounds in each process. */
  readonly rounds: number
  /** Duration of the load on each server in a round. */
  readonly seconds: number
}

export interface Server {
  readonly contender: Contender
  readonly process: ContenderProcess
  readonly port: number
}

/**
 * Loads the contenders in turn with wrk, one framework after the other. Rejects if a contender wrongly admits or
 * refuses requests.
 *
 * A process serves one contender, as an app uses one limiter, and the bare framework on another port. The two are
 * measured within seconds of each other and share the memory layout of the process. The compiled code still differs
 * between processes, so each contender runs in several processes.
 */
export async function measureHttp(contenders: readonly Contender[], plan: Plan): Promise<Measured> {
  const measured = new Map<Contender, Round[]>(contenders.map((each) => [each, []]))
  for (const bare of contenders.filter(({ protection }) => protection === "bare")) {
    const compared = contenders.filter((each) => each.bare === bare.name && each !== bare)
    for (let start = 0; start < plan.starts; start++) {
      for (const contender of rotated(compared, start)) {
        for (const round of await measureProcess(bare, contender, plan)) {
          measured.get(contender)?.push(round)
          measured.get(bare)?.push({ own: round.bare, bare: round.bare })
        }
      }
    }
  }
  return measured
}

async function measureProcess(
  bare: Contender,
  contender: Contender,
  { rounds, seconds }: Plan,
): Promise<readonly Round[]> {
  await stayInWindow(WINDOW_MS, MEASURED_WITHIN_MS)
  const child = startContender(new URL("./worker.ts", import.meta.url), contender.framework)
  try {
    const servers = [await startServer(bare, child), await startServer(contender, child)] as const
    for (const server of servers) await warmUp(server)
    const measured: Round[] = []
    for (let round = 0; round < rounds; round++) {
      const samples = new Map<Contender, Sample>()
      for (const server of rotated(servers, round)) {
        samples.set(server.contender, await measureRound(server, seconds))
      }
      measured.push({ own: samples.get(contender) as Sample, bare: samples.get(bare) as Sample })
    }
    return measured
  } finally {
    await child.stop()
  }
}

/** Starts the contender's server in the process. */
export async function startServer(contender: Contender, child: ContenderProcess): Promise<Server> {
  const { framework, protection, limit } = contender
  const port = await child.ask<number>({ start: framework, protection, limit })
  // Use up a limit of 1, so that later requests are refused.
  await fetch(`http://127.0.0.1:${port}/`)
  return { contender, process: child, port }
}

/** Sends a number of requests, because on a busy machine a fixed time may be too short to compile the hot path. */
async function warmUp({ port }: Server): Promise<void> {
  for (let answered = 0; answered < WARM_AFTER; ) answered += (await load(port, CONNECTIONS, 1)).requests
}

async function measureRound({ contender, process: child, port }: Server, seconds: number): Promise<Sample> {
  await verify(contender, port)
  const before = await child.ask<number>({})
  const { requests, durationUs, p99Us, status, failed } = await load(port, CONNECTIONS, seconds)
  const cpuUs = ((await child.ask<number>({})) - before) / requests
  const refused = contender.refuses ? requests : 0
  if (failed > 0 || status !== refused)
    throw new Error(
      `${contender.name}: ${refused} of ${requests} should be refused, were ${status}; ${failed} failed`,
    )
  await verify(contender, port)
  return { perSecond: (requests * 1e6) / durationUs, p99Ms: p99Us / 1e3, cpuUs }
}

/**
 * Rejects unless a response contains the expected status and header. wrk only counts all responses with a status of
 * 400 or above.
 */
export async function verify({ name, refuses, header }: Contender, port: number): Promise<void> {
  const response = await fetch(`http://127.0.0.1:${port}/`)
  await response.text()
  const expected = refuses ? 429 : 200
  if (response.status !== expected) throw new Error(`${name} answered ${response.status}, not ${expected}`)
  if (header !== undefined && !response.headers.has(header)) throw new Error(`${name} set no ${header}`)
}
