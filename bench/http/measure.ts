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

/** What one round showed of a contender, and of the bare framework in the same process. */
export interface Round {
  readonly own: Sample
  readonly bare: Sample
}

/** What was measured, by contender, in the order of the rounds. */
export type Measured = ReadonlyMap<Contender, readonly Round[]>

interface Plan {
  /** Processes that are started one after the other for each protection. */
  readonly starts: number
  /** In each of them. */
  readonly rounds: number
  /** For how long each is loaded in a round. */
  readonly seconds: number
}

interface Server {
  readonly contender: Contender
  readonly process: ContenderProcess
  readonly port: number
}

/**
 * Loads each in turn with wrk, one framework after the other; throws where one admits or refuses what it should not.
 *
 * An app has one limiter, so a process has one, with the bare framework beside it on another port: what is compared is
 * measured within seconds of each other, and is neither faster nor slower for how memory happens to lie in one process. Which
 * code is compiled how still differs from start to start, hence several.
 */
export async function measureHttp(contenders: readonly Contender[], plan: Plan): Promise<Measured> {
  const measured = new Map<Contender, Round[]>(contenders.map((each) => [each, []]))
  for (const framework of new Set(contenders.map((each) => each.framework))) {
    const those = contenders.filter((each) => each.framework === framework)
    const bare = those.filter(({ protection }) => protection === "bare")
    const protections = [...new Set(those.map(({ protection }) => protection))].filter(
      (each) => each !== "bare",
    )
    for (let start = 0; start < plan.starts; start++) {
      for (const protection of rotated(protections, start)) {
        const protectedBy = those.filter((each) => each.protection === protection)
        await measureProcess(framework, [...bare, ...protectedBy], plan, measured)
      }
    }
  }
  return measured
}

/** The first of the contenders is the bare framework. */
async function measureProcess(
  framework: Framework,
  contenders: readonly Contender[],
  { rounds, seconds }: Plan,
  into: ReadonlyMap<Contender, Round[]>,
): Promise<void> {
  const child = startContender(new URL("./worker.ts", import.meta.url), framework)
  try {
    const servers: Server[] = []
    for (const contender of contenders) servers.push(await startServer(contender, child))
    for (const server of servers) await warmUp(server)
    for (let round = 0; round < rounds; round++) {
      const samples = new Map<Contender, Sample>()
      for (const server of rotated(servers, round)) {
        samples.set(server.contender, await measureRound(server, seconds))
      }
      const bare = samples.get(contenders[0] as Contender) as Sample
      for (const [contender, own] of samples) into.get(contender)?.push({ own, bare })
    }
  } finally {
    await child.stop()
  }
}

async function startServer(contender: Contender, child: ContenderProcess): Promise<Server> {
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

/** wrk counts what is refused, but not with which status. */
async function verify({ name, refuses, header }: Contender, port: number): Promise<void> {
  const response = await fetch(`http://127.0.0.1:${port}/`)
  await response.text()
  const expected = refuses ? 429 : 200
  if (response.status !== expected) throw new Error(`${name} answered ${response.status}, not ${expected}`)
  if (header !== undefined && !response.headers.has(header)) throw new Error(`${name} set no ${header}`)
}
