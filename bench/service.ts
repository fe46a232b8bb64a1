import { writeFileSync } from "node:fs"
import { readCommandLine } from "./command-line.ts"
import { type ContenderProcess, startContender } from "./contender-process.ts"
import { callsSince, startServer, usageOf } from "./redis/server.ts"
import { describeMachine, printMachine } from "./report/machine.ts"
import { pairedRatios, rotated, type Spread, spreadOf } from "./report/statistics.ts"
import { printTable, printWanted } from "./report/table.ts"
import { type GrpcLoad, openGrpcLoad } from "./service/grpc-load.ts"
import { inBatches, singly, type Workload } from "./service/messages.ts"
import type { Kind } from "./service/worker.ts"

// Measures the decisions per second of one process of the decision service over gRPC, on the memory store and on Redis,
// next to @grpc/grpc-js alone. bench/README.md explains the output.

const PACKAGES = ["@sluice/core", "@sluice/service", "@grpc/grpc-js", "ioredis"]
const BATCH = 100
/** There are few clients, because the service checks each one in Redis again every ten seconds. */
const REFUSED_CLIENTS = 100
const LEAST_SINGLY = 10_000
const LEAST_IN_BATCHES = 100_000
const MOST_P99_MS = 10

interface Case {
  readonly name: string
  readonly kind: Kind
  readonly workload: Workload
  readonly inFlight: number
  /** Whether every request after the warm-up is refused. */
  readonly refused?: boolean
}

const ADMITTED = singly(1)
const CASES: readonly Case[] = [
  { name: "grpc-js alone, 32 in flight", kind: "grpc-js", workload: ADMITTED, inFlight: 32 },
  { name: "memory, 32 in flight", kind: "memory", workload: ADMITTED, inFlight: 32 },
  { name: "memory, 256 in flight", kind: "memory", workload: ADMITTED, inFlight: 256 },
  { name: "memory, batches of 100", kind: "memory", workload: inBatches(1, BATCH), inFlight: 4 },
  { name: "redis, 32 in flight", kind: "redis", workload: ADMITTED, inFlight: 32 },
  { name: "redis, 256 in flight", kind: "redis", workload: ADMITTED, inFlight: 256 },
  { name: "redis, batches of 100", kind: "redis", workload: inBatches(1, BATCH), inFlight: 4 },
  {
    name: "redis, refused",
    kind: "redis",
    workload: singly(2, REFUSED_CLIENTS),
    inFlight: 32,
    refused: true,
  },
]

interface Sample {
  /** Decisions a second. */
  readonly perSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
  /** CPU time of the service's process per decision. */
  readonly cpuUs: number
  /** Commands that Redis ran per decision, including commands in scripts. */
  readonly commands: number
  /** Script calls to Redis per decision. */
  readonly sent: number
}

const { quick, json, only } = readCommandLine()
const rounds = quick ? 2 : 7
const forMs = quick ? 1_000 : 3_000
const cases = CASES.filter(({ name, kind }) => name.includes(only) || kind === "grpc-js")

const redis = await startServer()
const processes = new Map<Kind, { readonly process: ContenderProcess; readonly client: GrpcLoad }>()
try {
  const machine = describeMachine(PACKAGES)
  printMachine(machine)
  console.log(
    `${rounds} rounds of ${forMs} ms, in turn; one process for each kind, with one connection from this process`,
  )
  for (const { kind } of cases) {
    if (processes.has(kind)) continue
    const process = startContender(new URL("./service/worker.ts", import.meta.url), kind)
    const port = await process.ask<number>({ start: kind, redisPort: redis.port })
    processes.set(kind, { process, client: await openGrpcLoad(port) })
  }
  // Warm up, so that the hot path is compiled and the limits of clients that must be refused are used up.
  for (const one of cases) await measure(one, Math.max(forMs, 2_000))
  const samples = new Map<Case, Sample[]>(cases.map((one) => [one, []]))
  for (let round = 0; round < rounds; round++) {
    for (const one of rotated(cases, round)) samples.get(one)?.push(await measure(one, forMs))
  }
  print(samples)
  if (json !== undefined) {
    const named = Object.fromEntries([...samples].map(([{ name }, list]) => [name, list]))
    writeFileSync(json, `${JSON.stringify({ machine, rounds, forMs, samples: named }, null, 2)}\n`)
  }
} finally {
  for (const { client } of processes.values()) client.close()
  await Promise.all([...processes.values()].map(({ process }) => process.stop()))
  await redis.stop()
}

async function measure({ name, kind, workload, inFlight, refused }: Case, ms: number): Promise<Sample> {
  const { process, client } = processes.get(kind) as { process: ContenderProcess; client: GrpcLoad }
  const { path, messages, each } = workload
  const before = await usageOf(redis)
  const cpuBefore = await process.ask<number>({ usage: true })
  const load = await client.ask({ path, messages, inFlight, until: { ms } })
  const cpuUs = (await process.ask<number>({ usage: true })) - cpuBefore
  const after = await usageOf(redis)
  const decisions = load.answers * each
  if (load.answers !== load.tookMs.length) throw new Error(`${name}: calls have failed`)
  // The first request of each client may still be admitted.
  const expected = refused === true ? 0 : load.answers
  if (each === 1 && Math.abs(load.forwarded - expected) > (refused === true ? messages.length : 0)) {
    throw new Error(`${name}: ${load.forwarded} of ${load.answers} were forwarded`)
  }
  const at = (share: number): number => load.tookMs[Math.floor(load.tookMs.length * share)] as number
  return {
    perSecond: decisions / load.seconds,
    p50Ms: at(0.5),
    p99Ms: at(0.99),
    cpuUs: cpuUs / decisions,
    commands: callsSince(before, after) / decisions,
    sent: callsSince(before, after, ["evalsha", "eval"]) / decisions,
  }
}

function print(samples: ReadonlyMap<Case, readonly Sample[]>): void {
  const all = (member: keyof Sample, list: readonly Sample[]): number[] =>
    list.map((sample) => sample[member])
  const spread = (member: keyof Sample, list: readonly Sample[]): Spread => spreadOf(all(member, list))
  const library = [...samples].find(([{ kind }]) => kind === "grpc-js")?.[1] ?? []
  printTable(
    "Medians of decisions per second, with least and most; of grpc-js: ratio of the CPU time per call",
    ["", "decisions/s", "from", "to", "p50 ms", "p99 ms", "CPU us", "of grpc-js", "Redis commands"],
    [...samples].map(([{ name, workload }, list]) => {
      const { median, least, most } = spread("perSecond", list)
      const calls = all("cpuUs", list).map((us) => us * workload.each)
      return [
        name,
        ...[median, least, most].map((value) => value.toFixed(0)),
        ...(["p50Ms", "p99Ms"] as const).map((member) => spread(member, list).median.toFixed(2)),
        spread("cpuUs", list).median.toFixed(1),
        spreadOf(pairedRatios(calls, all("cpuUs", library))).median.toFixed(2),
        spread("commands", list).median.toFixed(4),
      ]
    }),
  )
  console.log()
  for (const [{ name, kind, workload, inFlight, refused }, list] of samples) {
    if (kind === "grpc-js") continue
    const { median } = spread("perSecond", list)
    const least = workload.each === 1 ? LEAST_SINGLY : LEAST_IN_BATCHES
    printWanted(`${name}: decisions a second`, median, median >= least, `at least ${least}`)
    const p99 = spread("p99Ms", list).median
    if (inFlight === 32) printWanted(`${name}: p99 in ms`, p99, p99 < MOST_P99_MS, `below ${MOST_P99_MS}`)
    const { median: sent } = spread("sent", list)
    // The number is not exactly 0, because the service checks a refused client in Redis again every ten seconds.
    if (refused) printWanted(`${name}: calls of Redis for a decision`, sent, sent < 0.005, "none")
  }
}
