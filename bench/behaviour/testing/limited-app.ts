import { isIPv6 } from "node:net"
import { type RedisServer, startRedis } from "../../../test/servers/redis-server.ts"
import { serve } from "../app.ts"
import { AHEAD_MS, createWorld, type Start, type World } from "../world.ts"
import type { CreateCounting, Verdict } from "./takes.ts"

/** Faults in a test app's HTTP behavior. A correct app has none of them. */
export interface Manners {
  /** Whether HEAD requests are counted by a separate counter. */
  readonly countsHeadApart?: boolean
  /** Maps an address to the client whose requests are counted together. */
  readonly identify?: (address: string) => string
  /** Returns the value of `Retry-After`. If it returns undefined, the field is omitted. */
  readonly tellWait?: (waitMs: number) => string | undefined
  readonly tellRemaining?: (remaining: number) => string | undefined
  /** Whether the app responds with a server error when the counter fails. If false, the request is admitted. */
  readonly failsWithRedis?: boolean
  /**
   * The clients' timeout. The default is long enough for a busy machine, because these tests do not measure speed.
   */
  readonly patienceMs?: number
  /** The longest acceptable response time. Default: `patienceMs`. */
  readonly promptMs?: number
}

/** Returns an IPv4 address, whether or not it was mapped to IPv6, or the first four groups of an IPv6 address. */
export function networkOf(address: string): string {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/.exec(address)?.[1]
  if (mapped !== undefined) return mapped
  return isIPv6(address) ? address.split(":").slice(0, 4).join(":") : address
}

/** Returns the wait in whole seconds, at least one. */
export function wholeSecondsUp(waitMs: number): string {
  return String(Math.max(1, Math.ceil(waitMs / 1_000)))
}

/** Starts an app in this process on its own port. The clock of an app that runs "ahead" is simulated. */
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

/** Runs `work` in a world with such apps and their own Redis, then stops the apps and Redis. */
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
