import { memoryStore } from "@sluice/core"
import type { Policy, StoreResult } from "@sluice/core/stores"
import { redisStore } from "@sluice/redis"
import { freshAddress } from "../clients/addresses.ts"
import { uniformSequence } from "../clients/sequence.ts"
import { answerTasks } from "../contender-process.ts"
import type { Contender } from "../load/contender.ts"
import { costOfKeys, drive } from "../load/drive.ts"
import { connect } from "../redis/connect.ts"
import { START_MS } from "./counter.ts"
import { KINDS, type Kind, kindOf, policyOf } from "./kinds.ts"

/**
 * A round in memory. Each client sends `aWindow` requests per window, and the simulated time advances with each
 * request.
 */
export interface MemoryTask {
  readonly store: "memory"
  readonly clients: number
  readonly aWindow: number
  readonly calls: number
  readonly seed: number
}

/** A round in Redis in real time. The round runs for `warmMs` without measuring, then for `forMs` with measuring. */
export interface RedisTask {
  readonly store: "redis"
  readonly port: number
  readonly clients: number
  readonly windowMs: number
  readonly warmMs: number
  readonly forMs: number
  readonly seed: number
}

export interface SpeedSample {
  readonly perSecond: number
  /** CPU time of this process per decision, without the time for creating the key. */
  readonly nodeUs: number
  readonly decisions: number
}

/**
 * A limit that is never reached. A log uses the largest limit that it supports, and is too slow to reach this limit.
 */
const limitOf = ({ name }: Kind): number => (name === "sliding-log" ? 1_000 : 100_000)
const BUCKETS = 60
const MEMORY_WINDOW_MS = 60_000
const IN_FLIGHT = 64
const PATIENCE_MS = 2_000
const SEQUENCE = 2 ** 18

const kind = kindOf(process.argv[2] ?? "")
let countInMemory: ((key: string, nowMs: number) => void) | undefined
let calledInMemory = 0
const inRedis = new Map<number, Contender<StoreResult>>()

answerTasks<MemoryTask | RedisTask>((task) =>
  task.store === "memory" ? measureMemory(task) : measureRedis(task),
)

/**
 * Returns the policy for a window. The name of its counter differs for each kind, because all kinds share one server.
 */
function policyIn(windowMs: number): Policy {
  const counter = `${KINDS.indexOf(kind)}.${windowMs}`.padEnd(8, "_")
  return { ...policyOf(kind, { limit: limitOf(kind), windowMs, buckets: BUCKETS }), counter }
}

function measureMemory({ clients, aWindow, calls, seed }: MemoryTask): SpeedSample {
  countInMemory ??= memoryCounter()
  const sequence = uniformSequence(clients, calls, seed)
  const keyUs = costOfKeys(sequence)
  const msACall = MEMORY_WINDOW_MS / (clients * aWindow)
  const before = process.cpuUsage()
  const startedAt = performance.now()
  for (const index of sequence)
    countInMemory(freshAddress(index), START_MS + Math.floor(calledInMemory++ * msACall))
  const wallMs = performance.now() - startedAt
  const { user, system } = process.cpuUsage(before)
  return {
    perSecond: (calls * 1e3) / wallMs,
    nodeUs: (user + system) / calls - keyUs,
    decisions: calls,
  }
}

function memoryCounter(): (key: string, nowMs: number) => void {
  const policy = policyIn(MEMORY_WINDOW_MS)
  let nowMs = START_MS
  const store = memoryStore({ clock: { now: () => nowMs } })
  return (key, now) => {
    nowMs = now
    const answer = store.take([{ policy, partition: key, cost: 1, shadow: false }])
    if (answer?.granted !== true) throw new Error(`${kind.name} refused what fits`)
  }
}

async function measureRedis(task: RedisTask): Promise<SpeedSample> {
  const { port, clients, windowMs, warmMs, forMs, seed } = task
  const contender = inRedis.get(windowMs) ?? (await redisCounter(port, windowMs))
  inRedis.set(windowMs, contender)
  const sequence = uniformSequence(clients, SEQUENCE, seed)
  const keyUs = costOfKeys(sequence)
  if (warmMs > 0) await drive(contender as Contender, sequence, IN_FLIGHT, warmMs)
  const driven = await drive(contender as Contender, sequence, IN_FLIGHT, forMs)
  const { decisions, refused, failed, firstError, wallMs, cpuUs } = driven
  if (refused > 0) throw new Error(`${kind.name} refused ${refused} requests that fit`)
  // A few decisions miss the timeout on a busy machine. Ignore these failures if they are at most one percent.
  if (failed > decisions / 100) throw new Error(`${failed} of ${decisions} decisions failed: ${firstError}`)
  return { perSecond: (decisions * 1e3) / wallMs, nodeUs: cpuUs / decisions - keyUs, decisions }
}

async function redisCounter(port: number, windowMs: number): Promise<Contender<StoreResult>> {
  const store = redisStore({ client: await connect(port), timeoutMs: PATIENCE_MS })
  const policy = policyIn(windowMs)
  return {
    count: (key) => store.take([{ policy, partition: key, cost: 1, shadow: false }]),
    judge: ({ granted }) => (granted ? "granted" : "refused"),
    judgeError: () => "failed",
  }
}
