import { startContender } from "../contender-process.ts"
import { startServer } from "../redis/server.ts"
import { printTable, printWanted } from "../report/table.ts"
import { type Filling, keepsParts, LIMIT } from "./filling.ts"
import { KINDS, type Kind } from "./kinds.ts"
import type { WeighTask } from "./memory-worker.ts"
import { type RedisBytes, RedisScale } from "./redis-memory.ts"

const FILLINGS: readonly Filling[] = ["one request", "used up"]
const STRICT = "sliding-window-strict"
const MOST_VALUE = 160
const MOST_IN_REDIS = 320

/** Published estimates of the memory for a million users. */
const ESTIMATES: Readonly<Record<string, string>> = {
  "fixed-window": "32 MB",
  "sliding-log": "12 GB, 500 each",
  "sliding-window, buckets": "1.6 GB, 60 parts",
  "sliding-window-strict": "1.6 GB, 60 parts",
}

interface Weighed {
  readonly name: string
  readonly filling: Filling
  readonly redis: RedisBytes
  /** Bytes per client in the process, measured with this number of clients. */
  readonly inProcess: number
  readonly clients: number
}

/** Measures the bytes of a client's counter in Redis and in the memory store, for each algorithm. */
export async function measureMemory(isQuick: boolean): Promise<readonly Weighed[]> {
  const server = await startServer()
  const weighed: Weighed[] = []
  try {
    const scale = await RedisScale.open(server, isQuick ? 125_000 : 1_000_000)
    for (const kind of KINDS) {
      for (const filling of FILLINGS) {
        const redis = await scale.weigh(kind, filling)
        const clients = clientsInProcess(kind, filling, isQuick ? 125_000 : 1_000_000)
        const inProcess = await weighInProcess(kind, { clients, filling })
        weighed.push({ name: kind.name, filling, redis, inProcess, clients })
      }
    }
    scale.close()
  } finally {
    await server.stop()
  }
  print(weighed)
  return weighed
}

/**
 * Returns how many clients to count in the process, at most `most`. Returns a smaller number if filling a counter
 * takes many requests. This is safe because the bytes per client do not depend on the number of clients.
 */
export function clientsInProcess(kind: Kind, filling: Filling, most: number): number {
  if (filling === "one request" || !keepsParts(kind)) return most
  return kind.members.algorithm === "sliding-log" ? most / 200 : most / 20
}

/** Returns the bytes per client in a new process. */
export async function weighInProcess(kind: Kind, task: WeighTask): Promise<number> {
  const contender = startContender(new URL("./memory-worker.ts", import.meta.url), kind.name)
  try {
    return await contender.ask<number>(task)
  } finally {
    await contender.stop()
  }
}

function print(weighed: readonly Weighed[]): void {
  printTable(
    [
      `memory of a client, limit ${LIMIT} an hour; Redis with ${weighed[0]?.redis.clients} clients`,
      'in the process of as many as stand there; "a million" is by the bytes of a client',
    ].join("\n  "),
    [
      "",
      "",
      "value",
      "Redis, bytes",
      "a million, MB",
      "process, bytes",
      "of clients",
      "a million, MB",
      "the field's",
    ],
    weighed.map(({ name, filling, redis, inProcess, clients }) => [
      filling === FILLINGS[0] ? name : "",
      filling,
      String(redis.value),
      redis.aClient.toFixed(0),
      redis.aClient.toFixed(0),
      inProcess.toFixed(0),
      String(clients),
      inProcess.toFixed(0),
      (filling === "used up" ? ESTIMATES[name] : "") ?? "",
    ]),
  )
  const strict = weighed.find(({ name, filling }) => name === STRICT && filling === "used up")
  if (strict === undefined) return
  const { value, aClient } = strict.redis
  console.log()
  printWanted(`${STRICT}, used up: bytes of a value`, value, value <= MOST_VALUE, `at most ${MOST_VALUE}`)
  const wanted = `at most ${MOST_IN_REDIS}`
  printWanted(`${STRICT}, used up: bytes a client in Redis`, aClient, aClient <= MOST_IN_REDIS, wanted)
}
