// A process that runs jobs under the rules of an order, through Redis, and then reports when each job ran.
import { setTimeout as sleep } from "node:timers/promises"
import { createLimiter, type Limiter, type Rule } from "@sluice/core"
import { redisStore } from "@sluice/redis"
import { Redis } from "ioredis"

export interface Job {
  readonly name: string
  readonly lastsMs: number
  readonly user?: string
  readonly options?: Parameters<Limiter["run"]>[2]
}

/** Jobs that start at the same time, and the rules that hold them back. */
export interface Order {
  readonly service: string
  readonly rules: readonly Rule<Job>[]
  readonly jobs: readonly Job[]
}

/** When a job ran, by the clock that all processes of a machine share. */
export interface Ran {
  readonly name: string
  readonly user: string | undefined
  readonly startMs: number
  readonly endMs: number
  /** The start of the window in which each rule counted the job, by Redis' clock. */
  readonly windows: readonly (number | undefined)[]
}

/** "waiting" when all jobs wait, if that happens. Afterwards, the jobs that ran, in order of their starts. */
export type Told = "ready" | "waiting" | readonly Ran[]

const port = Number(process.argv[2])
const client = new Redis(port, "127.0.0.1")
const tell = (told: Told): void => void process.send?.(told)
const nowMs = (): number => Number(process.hrtime.bigint() / 1_000n) / 1_000

async function follow({ service, rules, jobs }: Order): Promise<void> {
  const store = redisStore({ client })
  const limiter = createLimiter<Job>({
    ...{ service, rules, store, storeTimeoutMs: 20_000 },
    fields: { user: (job) => job.user },
  })
  const ran: Ran[] = []
  const all = jobs.map((job) =>
    limiter.run(
      job,
      async ({ checks }) => {
        const startMs = nowMs()
        await sleep(job.lastsMs)
        const windows = checks.map((check) => check.counts?.startMs)
        ran.push({ name: job.name, user: job.user, startMs, endMs: nowMs(), windows })
      },
      job.options,
    ),
  )
  void tellWaiting(() => limiter.status.waiting === jobs.length)
  await Promise.all(all)
  await limiter.close()
  await store.close()
  tell(ran.sort((one, other) => one.startMs - other.startMs))
}

async function tellWaiting(isWaiting: () => boolean): Promise<void> {
  for (let tries = 0; tries < 1_000; tries++) {
    if (isWaiting()) return tell("waiting")
    await sleep(5)
  }
}

process.once("disconnect", () => process.exit())
process.on("message", (order: Order) => void follow(order))
await client.ping()
tell("ready")
