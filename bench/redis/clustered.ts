import { once } from "node:events"
import { createLimiter, type Limiter } from "@sluice/core"
import { redisStore } from "@sluice/redis"
import { leasedStore } from "@sluice/scale"
import { Cluster } from "ioredis"
import { startCluster } from "../../test/servers/redis-cluster.ts"
import { median, pairedRatios, rotated } from "../report/statistics.ts"
import { printWanted } from "../report/table.ts"

const NODES = 3
const CLIENTS = 1_000
const MOST_TIMES = 0.55
const PATIENCE_MS = 2_000

export interface Clustered {
  /** The p50 of a decision in milliseconds, by round. */
  readonly p50Ms: readonly number[]
  readonly leasedP50Ms: readonly number[]
}

/**
 * Measures a decision under a client's rule and a service's rule, with one decision in flight, on a cluster of three
 * nodes. The counters of the two rules are mostly on different nodes.
 */
export async function measureClustered(rounds: number, forMs: number): Promise<Clustered> {
  const servers = await startCluster({ primaries: NODES })
  const client = new Cluster(servers.nodes.map(({ port }) => ({ host: "127.0.0.1", port })))
  try {
    if (client.status !== "ready") await once(client, "ready")
    const plain = deciding(redisStore({ client, prefix: "plain:" }))
    const leased = deciding(
      leasedStore(redisStore({ client, prefix: "leased:" }), { rules: (name) => name === "all" }),
    )
    const times = new Map<Limiter, number[]>([
      [plain, []],
      [leased, []],
    ])
    for (const limiter of times.keys()) await p50Of(limiter, forMs)
    for (let round = 0; round < rounds; round++) {
      for (const limiter of rotated([plain, leased], round)) {
        times.get(limiter)?.push(await p50Of(limiter, forMs))
      }
    }
    await plain.close()
    await leased.close()
    return { p50Ms: times.get(plain) ?? [], leasedP50Ms: times.get(leased) ?? [] }
  } finally {
    client.disconnect()
    await servers.stop()
  }
}

/** Prints the target with the measured figure. */
export function printClustered({ p50Ms, leasedP50Ms }: Clustered): void {
  const times = median(pairedRatios(leasedP50Ms, p50Ms))
  const from = `${median(p50Ms).toFixed(3)} → ${median(leasedP50Ms).toFixed(3)} ms`
  const what = `on a cluster, client and service, 1 in flight (${from}): leased, p50, times that without leases`
  printWanted(what, times, times <= MOST_TIMES, `at most ${MOST_TIMES}`)
}

function deciding(store: ReturnType<typeof redisStore>): Limiter {
  return createLimiter({
    service: "bench",
    rules: [
      { field: "ip", limit: 1_000_000, window: "1 minute" },
      { name: "all", field: "service", limit: 1_000_000_000, window: "1 minute" },
    ],
    store,
    storeTimeoutMs: PATIENCE_MS,
  })
}

async function p50Of(limiter: Limiter, forMs: number): Promise<number> {
  const timesMs: number[] = []
  const endMs = performance.now() + forMs
  for (let i = 0; performance.now() < endMs; i++) {
    const client = i % CLIENTS
    const startMs = performance.now()
    const { degraded } = await limiter.decide({
      remoteAddress: `10.0.${client >> 8}.${client & 255}`,
    })
    timesMs.push(performance.now() - startMs)
    if (degraded) throw new Error("A decision was made without Redis")
  }
  return median(timesMs)
}
