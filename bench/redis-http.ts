import { writeFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { readCommandLine } from "./command-line.ts"
import { type ContenderProcess, startContender } from "./contender-process.ts"
import type { Protection } from "./http/setup.ts"
import { hasWrk, load, NO_WRK } from "./http/wrk.ts"
import type { HttpTask } from "./redis/fastify-worker.ts"
import { startServer, usageOf, versionOf } from "./redis/server.ts"
import { describeMachine, printMachine } from "./report/machine.ts"
import { pairedRatios, rotated, type Spread, spreadOf } from "./report/statistics.ts"
import { printTable, printWanted } from "./report/table.ts"

// Measures Fastify under the load of wrk: bare, with Sluice and with @fastify/rate-limit. Both limiters count in one
// Redis. bench/README.md explains the output.

const CONNECTIONS = 64
const WARM_AFTER = 20_000
const LEAST_OF_BARE = 0.63
const LEAST_OF_PEER = 1.15
const CLIENTS = fileURLToPath(new URL("./redis/clients.lua", import.meta.url))
const PACKAGES = ["@sluice/core", "@sluice/fastify", "@fastify/rate-limit", "fastify", "ioredis"]

const CONTENDERS: readonly { readonly name: string; readonly protection: Protection }[] = [
  { name: "fastify, bare", protection: "bare" },
  { name: "fastify, sluice on Redis", protection: "sluice" },
  { name: "fastify, @fastify/rate-limit on Redis", protection: "peer" },
]

interface Sample {
  readonly perSecond: number
  readonly p99Ms: number
  /** CPU time of the server's process per request. */
  readonly cpuUs: number
  /** CPU time of Redis per request. */
  readonly redisUs: number
}

interface Server {
  readonly name: string
  readonly protection: Protection
  readonly process: ContenderProcess
  readonly port: number
  readonly samples: Sample[]
}

const { quick, json, only } = readCommandLine()
const rounds = quick ? 3 : 9
const seconds = quick ? 1 : 3

if (!(await hasWrk())) {
  console.error(NO_WRK)
  process.exit(2)
}
const redis = await startServer()
const servers: Server[] = []
const machine = describeMachine(PACKAGES)
try {
  printMachine(machine)
  console.log(
    `Redis ${await versionOf(redis)}; wrk with ${CONNECTIONS} connections, ${rounds} rounds of ${seconds} s, in turn`,
  )
  for (const { name, protection } of CONTENDERS) {
    if (protection !== "peer" || name.includes(only)) servers.push(await start(name, protection))
  }
  for (const { port } of servers) {
    for (let answered = 0; answered < WARM_AFTER; ) answered += (await loadFrom(port, 1)).requests
  }
  for (let round = 0; round < rounds; round++) {
    for (const server of rotated(servers, round)) server.samples.push(await measureRound(server))
  }
} finally {
  await Promise.all(servers.map((server) => server.process.stop()))
  await redis.stop()
}
printResults()
if (json !== undefined) {
  const samples = Object.fromEntries(servers.map((server) => [server.name, server.samples]))
  writeFileSync(json, `${JSON.stringify({ machine, rounds, seconds, samples }, null, 2)}\n`)
}

async function start(name: string, protection: Protection): Promise<Server> {
  const child = startContender(new URL("./redis/fastify-worker.ts", import.meta.url), name)
  const port = await child.ask<number>({ start: protection, redisPort: redis.port } satisfies HttpTask)
  return { name, protection, process: child, port, samples: [] }
}

function loadFrom(port: number, forSeconds: number) {
  return load(port, CONNECTIONS, forSeconds, CLIENTS)
}

async function measureRound({ name, protection, process: child, port }: Server): Promise<Sample> {
  const [cpuBefore, redisBefore] = [await child.ask<number>({}), await usageOf(redis)]
  const { requests, durationUs, p99Us, status, failed } = await loadFrom(port, seconds)
  const [cpuAfter, redisAfter] = [await child.ask<number>({}), await usageOf(redis)]
  if (failed > 0 || status > 0) throw new Error(`${name}: ${status} of ${requests} refused, ${failed} failed`)
  const response = await fetch(`http://127.0.0.1:${port}/`)
  await response.text()
  const header = protection === "sluice" ? "ratelimit" : "x-ratelimit-remaining"
  if (protection !== "bare" && !response.headers.has(header)) throw new Error(`${name} set no ${header}`)
  return {
    perSecond: (requests * 1e6) / durationUs,
    p99Ms: p99Us / 1e3,
    cpuUs: (cpuAfter - cpuBefore) / requests,
    redisUs: (redisAfter.cpuUs - redisBefore.cpuUs) / requests,
  }
}

function samplesOf(protection: Protection, figure: keyof Sample): number[] {
  const server = servers.find((one) => one.protection === protection)
  return (server?.samples ?? []).map((sample) => sample[figure])
}

function compared(figure: keyof Sample, one: Protection, other: Protection): Spread {
  return spreadOf(pairedRatios(samplesOf(one, figure), samplesOf(other, figure)))
}

function printResults(): void {
  const spread = ({ median, least, most }: Spread) => [median, least, most].map((value) => value.toFixed(2))
  printTable(
    "Requests a second, medians; of bare and p99: median, least and most of the rounds",
    ["", "requests/s", "of bare", "from", "to", "p99 ms", "from", "to", "CPU us", "Redis us"],
    servers.map(({ name, protection }) => [
      name,
      spreadOf(samplesOf(protection, "perSecond")).median.toFixed(0),
      ...spread(compared("perSecond", protection, "bare")),
      ...spread(spreadOf(samplesOf(protection, "p99Ms"))),
      spreadOf(samplesOf(protection, "cpuUs")).median.toFixed(1),
      spreadOf(samplesOf(protection, "redisUs")).median.toFixed(1),
    ]),
  )
  console.log()
  const ofBare = compared("perSecond", "sluice", "bare").median
  printWanted("sluice on Redis, of bare", ofBare, ofBare >= LEAST_OF_BARE, `at least ${LEAST_OF_BARE}`)
  if (samplesOf("peer", "perSecond").length === 0) return
  const ofPeer = compared("perSecond", "sluice", "peer").median
  const byCpu = compared("cpuUs", "peer", "sluice").median
  const p99 = compared("p99Ms", "sluice", "peer").median
  const wanted = `at least ${LEAST_OF_PEER}`
  printWanted("sluice on Redis, times @fastify/rate-limit", ofPeer, ofPeer >= LEAST_OF_PEER, wanted)
  printWanted("sluice on Redis, times @fastify/rate-limit, by CPU", byCpu, byCpu >= LEAST_OF_PEER, wanted)
  printWanted("sluice on Redis, p99, of @fastify/rate-limit's", p99, p99 <= 1, "at most 1")
}
