import { isIPv6 } from "node:net"
import { type RedisServer, startRedis } from "../../../test/servers/redis-server.ts"
import { serve } from "../app.ts"
import { AHEAD_MS, createWorld, type Start, type World } from "../world.ts"
import type { CreateCounting, Verdict } from "./takes.ts"

/** How an app of these tests treats HTTP; a limiter that is right has none of it. */
export interface Manners {
  /** Whether a HEAD is counted by itself. */
  readonly countsHeadApart?: boolean
  /** Whose requests are counted together. */
  readonly identify?: (address: string) => string
  /** What stands in `Retry-After`; undefined is no such field. */
  readonly tellWait?: (waitMs: number) => string | undefined
  readonly tellRemaining?: (remaining: number) => string | undefined
  /** Whether an error of what it counts with is one of the server; else it is let through. */
  readonly failsWithRedis?: boolean
  /** How long its clients wait: by default longer than a machine under test takes, since it is not asked how quick it is. */
  readonly patienceMs?: number
  /** After which an answer is as bad as none; by default as long. */
  readonly promptMs?: number
}

/** An IPv4 address by itself, however it is spelled; an IPv6 address by its first four groups. */
export function networkOf(address: string): string {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/.exec(address)?.[1]
  if (mapped !== undefined) return mapped
  return isIPv6(address) ? address.split(":").slice(0, 4).join(":") : address
}

/** Waits of nothing are no waits: each client is told at least a second. */
export function wholeSecondsUp(waitMs: number): string {
  return String(Math.max(1, Math.ceil(waitMs / 1_000)))
}

/** An app in this process, on a port of its own; "ahead" is told that its clock is. */
function startLimited(create: CreateCounting, manners: Manners): Start {
  const {
    countsHeadApart = false,
    identify = networkOf,
    tellWait = wholeSecondsUp,
    tellRemaining = String,
    failsWithRedis = false,
  } = manners
  return async (setup, place) => {
    const { take, close } = create(setup, place === "ahead" ? AHEAD_MS : 0)
    const app = await serve(async (request, response) => {
      const client = identify(String(request.headers["x-forwarded-for"]))
      const isApart = countsHeadApart && request.method === "HEAD"
      let verdict: Verdict
      try {
        verdict = await take(isApart ? `head ${client}` : client)
      } catch {
        response.writeHead(failsWithRedis ? 500 : 200).end()
        return
      }
      const remaining = tellRemaining(verdict.remaining)
      if (remaining !== undefined) response.setHeader("x-ratelimit-remaining", remaining)
      const wait = verdict.waitMs > 0 ? tellWait(verdict.waitMs) : undefined
      if (wait !== undefined) response.setHeader("retry-after", wait)
      response.writeHead(verdict.waitMs > 0 ? 429 : 200).end("hello")
    }, close)
    return { port: app.port, memory: async () => process.memoryUsage().heapUsed, stop: app.close }
  }
}

/** Runs `work` in a world of one such app with a Redis of its own, and ends both. */
export async function inWorldOf<T>(
  create: CreateCounting,
  manners: Manners,
  work: (world: World) => Promise<T>,
): Promise<T> {
  const redis: RedisServer = await startRedis()
  const { patienceMs = 30_000, promptMs = patienceMs } = manners
  const waits = { patienceMs, promptMs }
  const world = createWorld(redis, waits, startLimited(create, manners))
  try {
    return await work(world)
  } finally {
    await world.stop()
    await redis.stop()
  }
}
