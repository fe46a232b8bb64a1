import { type ContenderProcess, startContender } from "../contender-process.ts"
import { rotated } from "../report/statistics.ts"
import { stayInWindow } from "../time.ts"
import type { Contender } from "./contenders.ts"
import { WINDOW_MS } from "./setup.ts"
import { load } from "./wrk.ts"

export const CONNECTIONS = 64
/** Requests after which a server runs as fast as it will. */
const WARM_AFTER = 20_000
/** Longer than a process is measured. Where a window ends one request is admitted that should be refused. */
const MEASURED_WITHIN_MS = 60_000

export interface Sample {
  readonly perSecond: number
  readonly p99Ms: number
  /** CPU time of the server's process for one request. */
  readonly cpuUs: number
}

/** What one round showed of a contender, and of the bare framework in the same process. */
export interface Round {
  readonly own: Sample
  readonly bare: Sample
}

/** What was measured, by contender, in the order of the rounds. */
export type Measured = ReadonlyMap<Contender, readonly Round[]>

interface Plan {
  /** Processes that are started one after the other for each contender. */
  readonly starts: number
  /** In each of them. */
  readonly rounds: number
  /** For how long each server is loaded in a round. */
  readonly seconds: number
}

export interface Server {
  readonly contender: Contender
  readonly process: ContenderProcess
  readonly port: number
}

/**
 * Loads each in turn with wrk, one framework after the other; throws where one admits or refuses what it should not.
 *
 * A process has one contender, as an app has one limiter, and the bare framework beside it on another port: what is compared
 * is measured within seconds, and is neither faster nor slower for how memory happens to lie in one process. Which code is
 * compiled how still differs from start to start, hence several.
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
  // The one request that a limit of 1 admits.
  await fetch(`http://127.0.0.1:${port}/`)
  return { contender, process: child, port }
}

/** By requests and not by time: on a busy machine a second is too short to compile what is hot. */
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

/** Throws unless a request gets the status and the header that show the contender at work: wrk counts refusals, but not their status. */
export async function verify({ name, refuses, header }: Contender, port: number): Promise<void> {
  const response = await fetch(`http://127.0.0.1:${port}/`)
  await response.text()
  const expected = refuses ? 429 : 200
  if (response.status !== expected) throw new Error(`${name} answered ${response.status}, not ${expected}`)
  if (header !== undefined && !response.headers.has(header)) throw new Error(`${name} set no ${header}`)
}
