import { writeFileSync } from "node:fs"
import { readCommandLine } from "./command-line.ts"
import { type ContenderProcess, startContender } from "./contender-process.ts"
import { CONTENDERS, type Contender } from "./http/contenders.ts"
import type { Framework } from "./http/worker.ts"
import { hasWrk, load } from "./http/wrk.ts"
import { describeMachine, printMachine } from "./report/machine.ts"
import { pairedRatios, rotated, type Spread, spreadOf } from "./report/statistics.ts"
import { printTable, printWanted } from "./report/table.ts"

// Each framework bare, with two constant headers, with Sluice and with its usual limiter, admitting and refusing, under the load of wrk.
// bench/README.md says how to read it.

const CONNECTIONS = 64
/** Requests after which a server runs as fast as it will. */
const WARM_AFTER = 20_000
/** Of bare Fastify's requests a second. */
const LEAST_OF_FASTIFY = 0.93

interface Sample {
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

const { quick, json, only } = readCommandLine()
const rounds = quick ? 5 : 15
const seconds = 1

if (!(await hasWrk())) {
  console.error("wrk is not on PATH. Debian and Ubuntu: apt-get install wrk. macOS: brew install wrk.")
  process.exit(2)
}
const machine = describeMachine()
printMachine(machine)
console.log(
  `wrk with ${CONNECTIONS} connections, ${rounds} rounds of ${seconds} s, in turn, one process for each framework`,
)

const wanted = CONTENDERS.filter(({ name }) => name.includes(only))
// With whom they are compared.
const needed = CONTENDERS.filter(({ name }) => wanted.some((one) => name === one.name || name === one.bare))
// Two processes that run the same code differ by more than a limiter costs, so all of a framework are in one.
const processes = new Map<Framework, ContenderProcess>()
const servers: Server[] = []
try {
  for (const contender of needed) servers.push(await startServer(contender))
  for (const server of servers) await warmUp(server)
  for (let round = 0; round < rounds; round++) {
    for (const server of rotated(servers, round)) server.samples.push(await measureRound(server))
  }
} finally {
  await Promise.all([...processes.values()].map((one) => one.stop()))
}

const results = servers.map(report)
printResults()
if (json !== undefined) {
  const samples = Object.fromEntries(servers.map((server) => [server.contender.name, server.samples]))
  writeFileSync(json, `${JSON.stringify({ machine, rounds, seconds, results, samples }, null, 2)}\n`)
}

async function startServer(contender: Contender): Promise<Server> {
  const { framework, protection, limit } = contender
  const child =
    processes.get(framework) ?? startContender(new URL("./http/worker.ts", import.meta.url), framework)
  processes.set(framework, child)
  const port = await child.ask<number>({ start: framework, protection, limit })
  // The one request that a limit of 1 admits.
  await fetch(`http://127.0.0.1:${port}/`)
  return { contender, process: child, port, samples: [] }
}

/** By requests and not by time: on a busy machine a second is too short to compile what is hot. */
async function warmUp({ port }: Server): Promise<void> {
  for (let answered = 0; answered < WARM_AFTER; ) answered += (await load(port, CONNECTIONS, 1)).requests
}

async function measureRound({ contender, process: child, port }: Server): Promise<Sample> {
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

interface Result {
  readonly contender: Contender
  readonly perSecond: Spread
  readonly p99Ms: Spread
  readonly cpuUs: Spread
  /** Of what the bare framework does, round by round. */
  readonly ofBare: Spread
  readonly cpuOfBare: Spread
}

function report({ contender, samples }: Server): Result {
  const bare = servers.find((server) => server.contender.name === contender.bare)?.samples ?? []
  const all = (member: keyof Sample, list: readonly Sample[]) => list.map((sample) => sample[member])
  const compared = (member: keyof Sample) => spreadOf(pairedRatios(all(member, samples), all(member, bare)))
  return {
    contender,
    perSecond: spreadOf(all("perSecond", samples)),
    p99Ms: spreadOf(all("p99Ms", samples)),
    cpuUs: spreadOf(all("cpuUs", samples)),
    ofBare: compared("perSecond"),
    cpuOfBare: compared("cpuUs"),
  }
}

function printResults(): void {
  const two = ({ median, least, most }: Spread) => [median, least, most].map((value) => value.toFixed(2))
  printTable(
    "Requests a second and CPU of the server, medians; of bare: median, least and most of the rounds",
    ["", "requests/s", "p99 ms", "CPU us", "of bare", "from", "to", "CPU of bare", "from", "to"],
    results.map(({ contender, perSecond, p99Ms, cpuUs, ofBare, cpuOfBare }) => [
      contender.name,
      perSecond.median.toFixed(0),
      p99Ms.median.toFixed(2),
      cpuUs.median.toFixed(1),
      ...two(ofBare),
      ...two(cpuOfBare),
    ]),
  )
  console.log()
  for (const result of results) {
    const { framework, protection, refuses, name } = result.contender
    if (protection !== "sluice") continue
    if (framework === "fastify") {
      const { ofBare, cpuOfBare } = result
      const wanted = `at least ${LEAST_OF_FASTIFY}`
      printWanted(`${name}: of bare`, ofBare.median, ofBare.median >= LEAST_OF_FASTIFY, wanted)
      // What bare Fastify does in the CPU time of one such request: the same figure, less the noise of others.
      const byCpu = 1 / cpuOfBare.median
      printWanted(`${name}: of bare, by CPU`, byCpu, byCpu >= LEAST_OF_FASTIFY, wanted)
    }
    const peer = results.find(
      (one) =>
        one.contender.framework === framework &&
        one.contender.protection === "peer" &&
        one.contender.refuses === refuses,
    )
    if (peer === undefined) continue
    const ahead = result.ofBare.median / peer.ofBare.median
    const aheadByCpu = peer.cpuOfBare.median / result.cpuOfBare.median
    printWanted(`${name}: times ${peer.contender.name}`, ahead, ahead > 1, "more than 1")
    printWanted(`${name}: times ${peer.contender.name}, by CPU`, aheadByCpu, aheadByCpu > 1, "more than 1")
  }
}
