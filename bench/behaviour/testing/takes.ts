import { Redis } from "ioredis"
import type { AppSetup, Limit } from "../app.ts"

/** The decision of a test limiter about one request. */
export interface Verdict {
  readonly remaining: number
  /** Time until the request would be admitted. 0 if it is admitted. */
  readonly waitMs: number
}

/** Counts a client's request, or refuses the request without counting it. */
export type Take = (client: string) => Promise<Verdict>

/** The counter of one app, and a function that releases it. */
export interface Counting {
  readonly take: Take
  close(): void
}

/** Creates the counter of an app whose clock is `aheadMs` ahead. */
export type CreateCounting = (setup: AppSetup, aheadMs: number) => Counting

/**
 * Uses an exact log for each limit, with the time of Redis or a given time. Either all limits admit and count a
 * request, or none of them does. KEYS: the logs. ARGV contains the time or "", then the limit and window of each log.
 * Times are in microseconds. The reply contains the wait and the remaining units.
 */
const LOG_SCRIPT = `
local now = tonumber(ARGV[1])
if not now then
  local time = redis.call("TIME")
  now = time[1] * 1000000 + time[2]
end
local wait, least = 0, math.huge
for i, key in ipairs(KEYS) do
  local limit, window = tonumber(ARGV[2 * i]), tonumber(ARGV[2 * i + 1])
  redis.call("ZREMRANGEBYSCORE", key, 0, now - window)
  local left = limit - redis.call("ZCARD", key)
  least = math.min(least, left)
  if left <= 0 then
    local oldest = redis.call("ZRANGE", key, -limit, -limit, "WITHSCORES")[2]
    wait = math.max(wait, oldest + window - now)
  end
end
if wait > 0 then return { wait, 0 } end
for i, key in ipairs(KEYS) do
  redis.call("ZADD", key, now, redis.call("INCR", "n"))
  redis.call("PEXPIRE", key, math.ceil(ARGV[2 * i + 1] / 1000))
end
return { 0, least - 1 }`

/** Returns a Redis client, which the app must close. */
export function connect(setup: AppSetup, options: { readonly maxRetriesPerRequest?: number } = {}): Redis {
  const client = new Redis({ host: "127.0.0.1", port: setup.redis?.port ?? 0, ...options })
  client.on("error", () => {})
  return client
}

/** Adds a unit to the logs of these limits, at the time of Redis or at a given time. */
export async function takeFromLogs(
  client: Redis,
  name: string,
  limits: readonly Limit[],
  nowMs?: number,
): Promise<Verdict> {
  const [waitUs = 0, remaining = 0] = (await client.eval(
    LOG_SCRIPT,
    limits.length,
    ...limits.map(({ windowMs }) => `${name}:${windowMs}`),
    nowMs === undefined ? "" : nowMs * 1_000,
    ...limits.flatMap(({ limit, windowMs }) => [limit, windowMs * 1_000]),
  )) as number[]
  return { waitMs: waitUs / 1_000, remaining }
}

/** Correct while Redis is available: checks all limits in one step, by the clock of Redis. */
export const byLogs: CreateCounting = (setup) => {
  const client = connect(setup)
  return { take: (name) => takeFromLogs(client, name, setup.limits), close: () => client.disconnect() }
}

/**
 * Keeps logs in the memory of the process. Correct unless `mostClients` makes it forget the least recently seen
 * client.
 */
export function inMemory(mostClients: number): CreateCounting {
  return ({ limits }) => {
    const { limit, windowMs } = limits[0] as Limit
    const logs = new Map<string, number[]>()
    return {
      async take(name) {
        const nowMs = Date.now()
        const log = (logs.get(name) ?? []).filter((atMs) => atMs > nowMs - windowMs)
        const oldestMs = log.at(-limit)
        if (oldestMs === undefined) log.push(nowMs)
        logs.delete(name)
        logs.set(name, log)
        const [first] = logs.keys()
        if (logs.size > mostClients && first !== undefined) logs.delete(first)
        return {
          waitMs: oldestMs === undefined ? 0 : oldestMs + windowMs - nowMs,
          remaining: limit - log.length,
        }
      },
      close() {},
    }
  }
}

/** Caches each refusal until its wait is over. */
export function remembering(create: CreateCounting): CreateCounting {
  return (setup, aheadMs) => {
    const { take, close } = create(setup, aheadMs)
    const refusedUntilMs = new Map<string, number>()
    return {
      async take(name) {
        const leftMs = (refusedUntilMs.get(name) ?? 0) - performance.now()
        if (leftMs > 0) return { waitMs: leftMs, remaining: 0 }
        const verdict = await take(name)
        // The wait starts now, after the reply, so the cached refusal may expire too late but never too early.
        if (verdict.waitMs > 0) refusedUntilMs.set(name, performance.now() + verdict.waitMs)
        return verdict
      },
      close,
    }
  }
}

/**
 * Falls back to counters in memory when Redis fails or times out. Wrong with `isForEver`, because it then never calls
 * Redis again.
 */
export function insured(
  create: CreateCounting,
  { isForEver, deadlineMs }: { readonly isForEver: boolean; readonly deadlineMs?: number },
): CreateCounting {
  return (setup, aheadMs) => {
    const shared = create(setup, aheadMs)
    const local = inMemory(Number.POSITIVE_INFINITY)(setup, aheadMs)
    let hasFailed = false
    return {
      async take(name) {
        if (hasFailed && isForEver) return local.take(name)
        let timer: NodeJS.Timeout | undefined
        const late = new Promise<undefined>((resolve) => {
          timer = setTimeout(() => resolve(undefined), deadlineMs ?? setup.storeTimeoutMs)
        })
        const verdict = await Promise.race([shared.take(name).catch(() => undefined), late])
        clearTimeout(timer)
        hasFailed ||= verdict === undefined
        return verdict ?? local.take(name)
      },
      close: shared.close,
    }
  }
}
