import { setTimeout as sleep } from "node:timers/promises"
import { createLimiter, leasedStore } from "@sluice/core"
import { redisStore } from "@sluice/core/redis"
import { printWanted } from "../report/table.ts"
import { LEASED } from "./cases.ts"
import { connect } from "./connect.ts"
import { callsSince, type RedisServer, usageOf } from "./server.ts"

/** Requests a second of the process, and the most calls of Redis for each of them. */
const PACES = [
  { perSecond: 150, most: 0.02 },
  { perSecond: 2_000, most: 0.002 },
] as const

export interface Paced {
  readonly perSecond: number
  readonly most: number
  /** Calls of Redis, refunds included, for each decision. */
  readonly calls: number
}

/** Measures how many calls a hot counter below its limit needs with leases, at a steady pace in one process. */
export async function measurePaced(server: RedisServer, forMs: number): Promise<readonly Paced[]> {
  const results: Paced[] = []
  for (const pace of PACES) {
    await server.command("FLUSHALL", "SYNC")
    const client = await connect(server.port)
    const store = leasedStore(redisStore({ client }))
    const limiter = createLimiter({ limit: 1_000_000, window: "1 minute", field: "service", store })
    const before = await usageOf(server)
    const startedMs = performance.now()
    let decisions = 0
    for (;;) {
      const elapsedMs = performance.now() - startedMs
      if (elapsedMs >= forMs) break
      while (decisions < (elapsedMs * pace.perSecond) / 1_000) {
        await limiter.decide({})
        decisions++
      }
      await sleep(1)
    }
    const calls = callsSince(before, await usageOf(server), ["evalsha", "eval"]) / decisions
    results.push({ ...pace, calls })
    await limiter.close()
    await store.close()
    client.disconnect()
  }
  return results
}

/** Prints the targets with the measured figures, one per line. */
export function printPaced(paced: readonly Paced[]): void {
  for (const { perSecond, most, calls } of paced) {
    const isMet = calls <= most
    // Two digits after the point would hide these figures.
    const what = `service, ${perSecond} a second: ${LEASED}, Redis calls for 1,000 decisions`
    printWanted(what, 1_000 * calls, isMet, `at most ${1_000 * most}`)
  }
}
