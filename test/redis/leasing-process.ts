// A process with leases on Redis that sends requests without a pause. The process reports every grant to its parent
// process.
import { setTimeout as sleep } from "node:timers/promises"
import { createLimiter } from "@sluice/core"
import { redisStore } from "@sluice/redis"
import { leasedStore } from "@sluice/scale"
import { Redis } from "ioredis"

/** The settings that all processes share. */
export interface LeasingApp {
  readonly port: number
  readonly limit: number
  readonly windowMs: number
  readonly buckets: number
}

/**
 * A grant: the wall-clock time before the request, the start of the store's sub-window, and whether a lease granted the
 * request.
 */
export type Grant = readonly [beforeMs: number, startMs: number, isLeased: boolean]

const AT_ONCE = 10

const { port, limit, windowMs, buckets } = JSON.parse(process.argv[2] ?? "") as LeasingApp
process.once("disconnect", () => process.exit())
const client = new Redis(port, "127.0.0.1")
const limiter = createLimiter({
  store: leasedStore(redisStore({ client })),
  service: "leasing",
  rules: [
    {
      name: "all",
      limit,
      window: windowMs,
      field: "service",
      algorithm: "sliding-window-strict",
      buckets,
    },
  ],
  // Use a long timeout, because a machine under test may be slow. Decisions without Redis do not count.
  storeTimeoutMs: 20_000,
})

async function grant(): Promise<Grant | undefined> {
  const beforeMs = Date.now()
  const { allowed, degraded, checks } = await limiter.decide({})
  const [check] = checks
  if (!allowed || degraded || check?.counts === undefined) return undefined
  return [beforeMs, check.counts.startMs, check.ageMs > 0]
}

for (;;) {
  const grants = await Promise.all(Array.from({ length: AT_ONCE }, grant))
  process.send?.(grants.filter((one) => one !== undefined))
  await sleep(1)
}
