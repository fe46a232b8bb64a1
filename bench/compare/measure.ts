import { type ContenderProcess, startContender } from "../contender-process.ts"
import { CONTENDERS } from "../http/contenders.ts"
import { CONNECTIONS, startServer, verify } from "../http/measure.ts"
import { sendRequests } from "../http/requests.ts"
import type { Sample, Task } from "../load/worker.ts"
import { WORKLOADS } from "../load/workloads.ts"
import { type RedisServer, usageOf } from "../redis/server.ts"
import { rotated } from "../report/statistics.ts"
import { withBuild } from "./build.ts"
import { type CalledService, startCalledService } from "./called-service.ts"
import { type Job, OF_REDIS } from "./measurements.ts"

/** CPU microseconds per request, by the name of the measurement. */
export type Figures = ReadonlyMap<string, number>

/**
 * The number of slices of a measurement, in which the builds take turns. Other load on the machine changes within
 * seconds, so it affects both builds equally. The number is even, so that each build is measured first equally often.
 */
const SLICES = 6
const FILLED_IN_FLIGHT = 64

const COUNTING_WORKER = new URL("../load/worker.ts", import.meta.url)
const SERVING_WORKER = new URL("../http/worker.ts", import.meta.url)

/** Measures a job once for the build of each tree, each in a new process. The figures are in the order of the trees. */
export async function measureJob(
  job: Job,
  trees: readonly string[],
  redis: RedisServer,
): Promise<readonly Figures[]> {
  if (job.kind === "calling") return measureCalling(job, trees)
  const isServing = job.kind === "serving"
  const module = isServing ? SERVING_WORKER : COUNTING_WORKER
  const name = isServing ? job.framework : job.contender
  const workers = trees.map((root) => startContender(module, name, withBuild(root)))
  try {
    return isServing ? await measureServing(job, workers) : await measureCounting(job, workers, redis)
  } finally {
    await Promise.all(workers.map((worker) => worker.stop()))
  }
}

type JobOf<Kind> = Extract<Job, { readonly kind: Kind }>

async function measureCounting(
  { store, workload, countings }: JobOf<"counting">,
  workers: readonly ContenderProcess[],
  redis: RedisServer,
): Promise<readonly Figures[]> {
  await redis.command("FLUSHALL", "SYNC")
  // Builds that use the same counter names share the counters. Without these requests, the first build would create
  // each counter and the second would update it, which is a different path of the script.
  const fill: Task = {
    port: redis.port,
    workload,
    inFlight: FILLED_IN_FLIGHT,
    fill: [0, WORKLOADS[workload].clients],
  }
  for (const worker of workers) await worker.ask<Sample>(fill)
  const figures = workers.map(() => new Map<string, number>())
  for (const { measurement, inFlight, warmUp, measured } of countings) {
    const task = { port: redis.port, workload, inFlight } satisfies Task
    for (const worker of workers) await worker.ask<Sample>({ ...task, requests: warmUp } satisfies Task)
    const [own, ofRedis] = [workers.map(() => 0), workers.map(() => 0)]
    await takeTurns(workers, async (worker, index, slice) => {
      const before = await usageOf(redis)
      const sliced: Task = { ...task, requests: measured / SLICES, seed: 1 + slice }
      const { nodeUs, decisions, refused } = await worker.ask<Sample>(sliced)
      if (refused > 0) throw new Error(`${measurement}: ${refused} requests were refused`)
      own[index] = (own[index] as number) + nodeUs / SLICES
      const redisUs = ((await usageOf(redis)).cpuUs - before.cpuUs) / decisions
      ofRedis[index] = (ofRedis[index] as number) + redisUs / SLICES
    })
    for (const [index, map] of figures.entries()) {
      map.set(measurement, own[index] as number)
      if (store === "redis") map.set(measurement + OF_REDIS, ofRedis[index] as number)
    }
  }
  return figures
}

async function measureServing(
  { measurement, framework, warmUp, measured }: JobOf<"serving">,
  workers: readonly ContenderProcess[],
): Promise<readonly Figures[]> {
  const contender = CONTENDERS.find(({ name }) => name === `${framework}, sluice admits`)
  if (contender === undefined) throw new Error(`There is no server that admits for ${framework}`)
  const ports: number[] = []
  for (const worker of workers) {
    const { port } = await startServer(contender, worker)
    await verify(contender, port)
    await sendRequests(port, CONNECTIONS, warmUp)
    ports.push(port)
  }
  const usedUs = workers.map(() => 0)
  await takeTurns(workers, async (worker, index) => {
    const before = await worker.ask<number>({})
    await sendRequests(ports[index] as number, CONNECTIONS, measured / SLICES)
    usedUs[index] = (usedUs[index] as number) + (await worker.ask<number>({})) - before
  })
  for (const port of ports) await verify(contender, port)
  return usedUs.map((us) => new Map([[measurement, us / measured]]))
}

async function measureCalling(
  { callings }: JobOf<"calling">,
  trees: readonly string[],
): Promise<readonly Figures[]> {
  const services: CalledService[] = []
  try {
    for (const root of trees) services.push(await startCalledService(root))
    const figures = services.map(() => new Map<string, number>())
    for (const calling of callings) {
      for (const service of services) await service.call(calling, calling.warmUp)
      const usedUs = services.map(() => 0)
      await takeTurns(services, async (service, index) => {
        const before = await service.usage()
        await service.call(calling, calling.measured / SLICES)
        usedUs[index] = (usedUs[index] as number) + (await service.usage()).cpuUs - before.cpuUs
      })
      for (const [index, map] of figures.entries()) {
        map.set(calling.measurement, (usedUs[index] as number) / calling.measured)
      }
    }
    return figures
  } finally {
    await Promise.all(services.map((service) => service.stop()))
  }
}

/** Calls `measure` for each worker in each slice, one after the other. Each slice starts with a different worker. */
async function takeTurns<Worker>(
  workers: readonly Worker[],
  measure: (worker: Worker, index: number, slice: number) => Promise<void>,
): Promise<void> {
  for (let slice = 0; slice < SLICES; slice++) {
    for (const [index, worker] of rotated([...workers.entries()], slice)) await measure(worker, index, slice)
  }
}
