import { type ContenderProcess, startContender } from "../contender-process.ts"
import { rotated } from "../report/statistics.ts"
import type { Contender } from "./contenders.ts"
import type { Framework } from "./worker.ts"
import { load } from "./wrk.ts"

export const CONNECTIONS = 64
/** Requests after which a server runs as fast as it will. */
const WARM_AFTER = 20_000

export interface Sample {
  readonly perSecond: number
  readonly p99Ms: number
  /** CPU time of the server's process for one request. */
  readonly cpuUs: number
}

interface Server {
  readonly contender: Contender
  readonly process: ContenderProcess
  readonly port: number
  readonly samples: Sample[]
}

/** What was measured, by contender; a list has the rounds in order, the same for all. */
export type Measured = ReadonlyMap<Contender, readonly Sample[]>

interface Rounds {
  readonly rounds: number
  /** For how long each is loaded in a round. */
  readonly seconds: number
}

/**
 * Loads each in turn with wrk, one framework after the other; throws where one admits or refuses what it should not. What is
 * compared is measured within seconds of each other: a machine that others use has another speed a minute later.
 */
export async function measureHttp(contenders: readonly Contender[], rounds: Rounds): Promise<Measured> {
  const samples = new Map<Contender, readonly Sample[]>()
  for (const framework of new Set(contenders.map((each) => each.framework))) {
    const those = contenders.filter((each) => each.framework === framework)
    for (const server of await measureFramework(framework, those, rounds)) {
      samples.set(server.contender, server.samples)
    }
  }
  return samples
}

/** Two processes that run the same code differ by more than a limiter costs, so all of a framework are in one. */
async function measureFramework(
  framework: Framework,
  contenders: readonly Contender[],
  { rounds, seconds }: Rounds,
): Promise<readonly Server[]> {
  const child = startContender(new URL("./worker.ts", import.meta.url), framework)
  const servers: Server[] = []
  try {
    for (const contender of contenders) servers.push(await startServer(contender, child))
    for (const server of servers) await warmUp(server)
    for (let round = 0; round < rounds; round++) {
      for (const server of rotated(servers, round)) server.samples.push(await measureRound(server, seconds))
    }
  } finally {
    await child.stop()
  }
  return servers
}

async function startServer(contender: Contender, child: ContenderProcess): Promise<Server> {
  const { framework, protection, limit } = contender
  const port = await child.ask<number>({ start: framework, protection, limit })
  // The one request that a limit of 1 admits.
  await fetch(`http://127.0.0.1:${port}/`)
  return { contender, process: child, port, samples: [] }
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

/** wrk counts what is refused, but not with which status. */
async function verify({ name, refuses, header }: Contender, port: number): Promise<void> {
  const response = await fetch(`http://127.0.0.1:${port}/`)
  await response.text()
  const expected = refuses ? 429 : 200
  if (response.status !== expected) throw new Error(`${name} answered ${response.status}, not ${expected}`)
  if (header !== undefined && !response.headers.has(header)) throw new Error(`${name} set no ${header}`)
}
