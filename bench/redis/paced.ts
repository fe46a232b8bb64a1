import { setTimeout as sleep } from "node:timers/promises"
import type { Policy } from "@sluice/core/stores"
import { redisStore } from "@sluice/redis"
import { leasedStore } from "@sluice/scale"
import { printWanted } from "../report/table.ts"
import { connect } from "./connect.ts"
import { callsSince, type RedisServer, usageOf } from "./server.ts"

/** Requests per second of the process, and the most Redis calls per request. */
const PACES = [
  { perSecond: 150, most: 0.02 },
  { perSecond: 2_000, most: 0.002 },
] as const

/** Until the demand is known, a process leases only a few units at a time. */
const WARM_UP_MS = 3_000

const SERVICE: Policy = {
  name: "service",
  counter: "k3JxW0aQ7rBn5TzE",
  algorithm: "sliding-window",
  limit: 1_000_000,
  windowMs: 60_000,
  align: "epoch",
}

export interface Paced {
  readonly perSecond: number
  readonly most: number
  /** Number of Redis calls per decision, including refunds. */
  readonly calls: number
}

/** Measures how many calls a hot counter below its limit needs with leases, at a steady rate from one process. */
export async function measurePaced(server: RedisServer, forMs: number): Promise<readonly Paced[]> {
  const results: Paced[] = []
  for (const pace of PACES) {
    await server.command("FLUSHALL", "SYNC")
    const client = await connect(server.port)
    const store = leasedStore(redisStore({ client }))
    const run = async (ms: number): Promise<number> => {
      const startedMs = performance.now()
      let decisions = 0
      for (;;) {
        const elapsedMs = performance.now() - startedMs
        if (elapsedMs >= ms) return decisions
        for (; decisions < (elapsedMs * pace.perSecond) / 1_000; decisions++) {
          await store.take([{ policy: SERVICE, partition: "", cost: 1, shadow: false }])
        }
        await sleep(1)
      }
    }
    await run(WARM_UP_MS)
    const before = await usageOf(server)
    const decisions = await run(forMs)
    const calls = callsSince(before, await usageOf(server), ["evalsha", "eval"]) / decisions
    results.push({ ...pace, calls })
    await store.close()
    client.disconnect()
  }
  return results
}

/** Prints the targets with the measured figures, one per line. */
export function printPaced(paced: readonly Paced[]): void {
  for (const { perSecond, most, calls } of paced) {
    const isMet = calls <= most
    // Print more than two decimal places, because two would hide these figures.
    const what = `service, ${perSecond} a second: a leased store, Redis calls for 1,000 decisions`
    printWanted(what, 1_000 * calls, isMet, `at most ${1_000 * most}`)
  }
}
