import { type ContenderProcess, startContender } from "../contender-process.ts"
import { CONTENDERS } from "../http/contenders.ts"
import { CONNECTIONS, startServer, verify } from "../http/measure.ts"
import { sendRequests } from "../http/requests.ts"
import type { Sample, Task } from "../load/worker.ts"
import { type RedisServer, usageOf } from "../redis/server.ts"
import { type Build, withBuild } from "./build.ts"
import { type Job, OF_REDIS } from "./measurements.ts"

/** CPU microseconds by the request, by the name of what was measured. */
export type Figures = ReadonlyMap<string, number>

const COUNTING_WORKER = new URL("../load/worker.ts", import.meta.url)
const SERVING_WORKER = new URL("../http/worker.ts", import.meta.url)

/** Measures a job of a build once, in a new process. */
export async function measureJob(job: Job, build: Build, redis: RedisServer): Promise<Figures> {
  const isServing = job.kind === "serving"
  const module = isServing ? SERVING_WORKER : COUNTING_WORKER
  const name = isServing ? job.framework : job.contender
  const worker = startContender(module, name, withBuild(build))
  try {
    return isServing ? await measureServing(job, worker) : await measureCounting(job, worker, redis)
  } finally {
    await worker.stop()
  }
}

type JobOf<Kind> = Extract<Job, { readonly kind: Kind }>

async function measureCounting(
  { store, workload, countings }: JobOf<"counting">,
  worker: ContenderProcess,
  redis: RedisServer,
): Promise<Figures> {
  // The builds may store counters differently, so both begin without any.
  await redis.command("FLUSHALL", "SYNC")
  const figures = new Map<string, number>()
  for (const { measurement, inFlight, warmUp, measured } of countings) {
    const task = { port: redis.port, workload, inFlight } satisfies Task
    await worker.ask<Sample>({ ...task, requests: warmUp, seed: 1 } satisfies Task)
    const before = await usageOf(redis)
    const sample = await worker.ask<Sample>({ ...task, requests: measured, seed: 2 } satisfies Task)
    const redisUs = ((await usageOf(redis)).cpuUs - before.cpuUs) / sample.decisions
    if (sample.refused > 0) throw new Error(`${measurement}: ${sample.refused} requests were refused`)
    figures.set(measurement, sample.nodeUs)
    if (store === "redis") figures.set(measurement + OF_REDIS, redisUs)
  }
  return figures
}

async function measureServing(
  { measurement, framework, warmUp, measured }: JobOf<"serving">,
  worker: ContenderProcess,
): Promise<Figures> {
  const contender = CONTENDERS.find(({ name }) => name === `${framework}, sluice admits`)
  if (contender === undefined) throw new Error(`There is no server that admits for ${framework}`)
  const { port } = await startServer(contender, worker)
  await verify(contender, port)
  await sendRequests(port, CONNECTIONS, warmUp)
  const before = await worker.ask<number>({})
  await sendRequests(port, CONNECTIONS, measured)
  const cpuUs = (await worker.ask<number>({})) - before
  await verify(contender, port)
  return new Map([[measurement, cpuUs / measured]])
}
