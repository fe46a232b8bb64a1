// A process that runs works with permits. It reports when each work begins and ends to its parent process, the witness.
import { setMaxListeners } from "node:events"
import { setTimeout as sleep } from "node:timers/promises"
import { createLimiter, type Limiter, RateLimitExceededError, type Rule } from "@sluice/core"
import { redisStore } from "@sluice/redis"
import { Redis } from "ioredis"
import { type ClientChoice, openClient } from "./open-client.ts"
import { monotonicMs } from "./permit-history.ts"

/** A user's work. */
export interface Job {
  readonly user: string
}

/** What the process runs until it is told to finish. */
export interface Works {
  readonly client: ClientChoice
  readonly prefix: string
  readonly rules: readonly Rule<Job>[]
  /** Number of works that run or wait at the same time, and their users in turn. */
  readonly jobs: number
  readonly users: readonly string[]
  /** The shortest and the longest work, in milliseconds. */
  readonly lastMs: readonly [number, number]
  /** The longest wait of a work. Default: unlimited. */
  readonly maxWaitMs?: number
}

export type Order = { readonly do: "run"; readonly works: Works } | { readonly do: "finish" }

/** A message of the process. All times are in milliseconds of the machine's monotonic clock. */
export type Report =
  | { readonly told: "ready" }
  /** A work has begun, and ends at `untilMs` at the latest. */
  | {
      readonly told: "begun"
      readonly id: number
      readonly user: string
      readonly atMs: number
      readonly untilMs: number
    }
  /** A work has ended, but its permit is not released yet. */
  | { readonly told: "ended"; readonly id: number; readonly atMs: number }
  /** `run` has returned. */
  | { readonly told: "released"; readonly id: number; readonly atMs: number }
  /** The process did not run, or did not reach Redis. */
  | { readonly told: "away"; readonly fromMs: number; readonly toMs: number }
  | { readonly told: "lost"; readonly permits: number }
  /** All works have ended. `refused` contains the number of refusals by their reason. */
  | { readonly told: "finished"; readonly refused: Readonly<Record<string, number>> }

/** A longer interval between two replies of Redis, which should arrive every 20 ms, counts as an absence. */
const AWAY_MS = 100

function tell(report: Report): void {
  process.send?.(report)
}

/** Asks Redis every 20 ms, over a separate connection on the same way, and reports each absence. */
function watchAbsences(port: number): () => void {
  const client = new Redis(port, "127.0.0.1", { maxRetriesPerRequest: null, retryStrategy: () => 10 })
  client.on("error", () => {})
  let isOver = false
  const watch = async (): Promise<void> => {
    let fromMs = monotonicMs()
    while (!isOver) {
      await client.ping()
      const toMs = monotonicMs()
      if (toMs - fromMs > AWAY_MS) tell({ told: "away", fromMs, toMs })
      fromMs = toMs
      await sleep(20)
    }
  }
  watch().catch(() => {})
  return () => {
    isOver = true
    client.disconnect()
  }
}

let made = 0

/** Runs one work after the other until `signal` aborts, which also ends the present work. */
async function runJobs(
  limiter: Limiter<Job>,
  user: string,
  { lastMs: [shortestMs, longestMs], maxWaitMs }: Works,
  signal: AbortSignal,
  refused: Record<string, number>,
): Promise<void> {
  while (!signal.aborted) {
    const id = made++
    try {
      await limiter.run(
        { user },
        async () => {
          const atMs = monotonicMs()
          // Most works are short, but most of the running works are long.
          const forMs = shortestMs * (longestMs / shortestMs) ** Math.random()
          tell({ told: "begun", id, user, atMs, untilMs: atMs + forMs })
          await sleep(forMs, undefined, { signal }).catch(() => {})
          tell({ told: "ended", id, atMs: monotonicMs() })
        },
        { signal, maxWaitMs },
      )
      tell({ told: "released", id, atMs: monotonicMs() })
    } catch (error) {
      if (signal.aborted) return
      if (!(error instanceof RateLimitExceededError)) throw error
      const { refusal = "" } = error.decision
      refused[refusal] = (refused[refusal] ?? 0) + 1
      await sleep(10)
    }
  }
}

/** Starts the works. The returned function ends them. */
async function start(works: Works): Promise<() => Promise<void>> {
  const { client, close } = await openClient(works.client)
  const limiter = createLimiter<Job>({
    store: redisStore({ client, prefix: works.prefix }),
    service: "works",
    fields: { user: ({ user }) => user },
    rules: [...works.rules],
    // Use a long timeout, because a machine under test may be slow. Without Redis, no work runs.
    storeTimeoutMs: 20_000,
    onStoreFailure: "deny",
    logger: { warn() {}, error() {} },
  })
  limiter.on("permits-lost", ({ permits }) => tell({ told: "lost", permits }))
  const forget = watchAbsences(works.client.ports[0] ?? 0)
  const finish = new AbortController()
  setMaxListeners(0, finish.signal)
  const refused: Record<string, number> = {}
  const running = Array.from({ length: works.jobs }, (_, nth) => {
    return runJobs(limiter, works.users[nth % works.users.length] ?? "", works, finish.signal, refused)
  })
  return async () => {
    finish.abort()
    await Promise.all(running)
    forget()
    await limiter.close()
    close()
    tell({ told: "finished", refused })
  }
}

let finish: Promise<() => Promise<void>> | undefined
// Exit when the parent has exited.
process.once("disconnect", () => process.exit())
process.on("message", (order: Order) => {
  if (order.do === "run") finish = start(order.works)
  else void finish?.then((end) => end())
})
tell({ told: "ready" })
