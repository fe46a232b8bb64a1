import { type Policy, transactionalStore } from "@sluice/core/stores"
import { RateLimiterPostgres } from "rate-limiter-flexible"
import { postgresCounters } from "../../examples/src/postgres/store.ts"
import { openPool, startPostgres } from "../../test/servers/postgres.ts"
import { pairedRatios, rotated, spreadOf } from "../report/statistics.ts"
import { printTable } from "../report/table.ts"
import { PEER } from "./cases.ts"

const EXAMPLE = "sluice, the example's store"
const CLIENTS = 1_000
const IN_FLIGHT = 16
const LIMIT = 1_000_000
const DAY_MS = 86_400_000
const POLICY: Policy = {
  name: "rate",
  counter: "rate",
  algorithm: "sliding-window",
  limit: LIMIT,
  windowMs: DAY_MS,
  align: "epoch",
}

/** Decisions per second of each round, by contender. */
export type PostgresSamples = Readonly<Record<string, readonly number[]>>

/**
 * Compares the store of `examples/src/postgres` with the store of rate-limiter-flexible on one PostgreSQL in this process.
 * It runs one transaction at a time, so the ratio is the work for each decision.
 */
export async function measurePostgres(rounds: number, forMs: number): Promise<PostgresSamples> {
  const server = await startPostgres()
  // More connections would not be quicker, and would share the names of the peer's prepared statements.
  const pool = openPool(server, 1)
  try {
    await pool.query(
      "CREATE TABLE counters (key text PRIMARY KEY, counter jsonb NOT NULL, expires_at_ms bigint NOT NULL)",
    )
    const store = transactionalStore(postgresCounters(pool))
    const peer = await new Promise<RateLimiterPostgres>((resolve, reject) => {
      const options = { storeClient: pool, points: LIMIT, duration: DAY_MS / 1_000, keyPrefix: "peer" }
      const made: RateLimiterPostgres = new RateLimiterPostgres(options, (error) =>
        error === undefined ? resolve(made) : reject(error),
      )
    })
    const contenders: readonly (readonly [string, (client: string) => unknown])[] = [
      [EXAMPLE, (partition) => store.take([{ policy: POLICY, partition, cost: 1, shadow: false }], 60_000)],
      [PEER, (client) => peer.consume(client)],
    ]
    const samples: Record<string, number[]> = { [EXAMPLE]: [], [PEER]: [] }
    // The first round is a warm-up.
    for (let round = 0; round <= rounds; round++) {
      for (const [name, decide] of rotated(contenders, round)) {
        const perSecond = await rateOf(decide, forMs)
        if (round > 0) samples[name]?.push(perSecond)
      }
    }
    return samples
  } finally {
    await pool.end()
    await server.stop()
  }
}

/** Returns the decisions per second while each decision starts the next one. */
async function rateOf(decide: (client: string) => unknown, forMs: number): Promise<number> {
  const startMs = performance.now()
  let decisions = 0
  const drive = async (): Promise<void> => {
    while (performance.now() - startMs < forMs) {
      await decide(`192.0.2.${decisions++ % CLIENTS}`)
    }
  }
  await Promise.all(Array.from({ length: IN_FLIGHT }, drive))
  return (decisions * 1_000) / (performance.now() - startMs)
}

export function printPostgres(samples: PostgresSamples): void {
  printTable(
    `PostgreSQL, ${CLIENTS} clients, ${IN_FLIGHT} in flight`,
    ["", "decisions/s", "times peer", "from", "to"],
    Object.entries(samples).map(([name, perSecond]) => {
      const { median, least, most } = spreadOf(pairedRatios(perSecond, samples[PEER] ?? []))
      return [
        name,
        spreadOf(perSecond).median.toFixed(0),
        ...[median, least, most].map((times) => times.toFixed(2)),
      ]
    }),
  )
}
