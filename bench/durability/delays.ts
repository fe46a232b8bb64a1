import { setTimeout as sleep } from "node:timers/promises"
import type { RedisBinary } from "../../test/servers/redis-binary.ts"
import { type RedisServer, startRedis } from "../../test/servers/redis-server.ts"
import { percentile, rotated } from "../report/statistics.ts"
import { ALWAYS, EVERYSEC } from "./losses.ts"
import { type Month, openMonth, sendSteadily } from "./month.ts"

export interface Delay {
  readonly p50Ms: number
  readonly p99Ms: number
}

const SETTINGS: Readonly<Record<string, readonly string[]>> = { none: [], everysec: EVERYSEC, always: ALWAYS }

/** Measures how long decisions take with each setting of the AOF, in turn. Returns one delay for each round. */
export async function measureDelays(
  { perSecond, rounds, forMs }: { perSecond: number; rounds: number; forMs: number },
  binary: RedisBinary,
): Promise<Readonly<Record<string, readonly Delay[]>>> {
  const running: { name: string; server: RedisServer; month: Month; delays: Delay[] }[] = []
  try {
    for (const [name, args] of Object.entries(SETTINGS)) {
      const server = await startRedis({ args, binary })
      running.push({ name, server, month: await openMonth(server.port), delays: [] })
    }
    // The first round is a warm-up.
    for (let round = 0; round <= rounds; round++) {
      for (const { month, delays } of rotated(running, round)) {
        const delay = await delayOf(month, perSecond, forMs)
        if (round > 0) delays.push(delay)
      }
    }
    return Object.fromEntries(running.map(({ name, delays }) => [name, delays]))
  } finally {
    for (const { month, server } of running) {
      await month.close()
      await server.stop()
    }
  }
}

async function delayOf({ limiter }: Month, perSecond: number, forMs: number): Promise<Delay> {
  const tookMs: number[] = []
  await sendSteadily(perSecond, AbortSignal.timeout(forMs), async (nth) => {
    const startMs = performance.now()
    await limiter.decide({ account: `${nth % 1_000}` })
    tookMs.push(performance.now() - startMs)
  })
  return { p50Ms: percentile(tookMs, 0.5), p99Ms: percentile(tookMs, 0.99) }
}

/**
 * Returns the longest time in milliseconds for which a write was not on the disk, with `everysec`. A loss of power
 * within this time loses the write. Redis 7.2 or later says when a write is on the disk.
 */
export async function measureUnsynced(
  perSecond: number,
  forMs: number,
  binary: RedisBinary,
): Promise<number> {
  const server = await startRedis({ args: EVERYSEC, binary })
  const { limiter, close } = await openMonth(server.port)
  try {
    const stopped = AbortSignal.timeout(forMs)
    const sent = sendSteadily(perSecond, stopped, async (nth) => {
      await limiter.decide({ account: `${nth % 1_000}` })
    })
    let longestMs = 0
    while (!stopped.aborted) {
      await server.command("SET", "written", "1")
      const startMs = performance.now()
      await server.command("WAITAOF", 1, 0, 0)
      longestMs = Math.max(longestMs, performance.now() - startMs)
      await sleep(1)
    }
    await sent
    return longestMs
  } finally {
    await close()
    await server.stop()
  }
}
