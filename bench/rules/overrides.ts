import { createLimiter, type Limiter, memoryStore, type Store } from "@sluice/core"
import { redisStore } from "@sluice/redis"
import { connect } from "../redis/connect.ts"
import { startServer } from "../redis/server.ts"
import { median, pairedRatios, rotated } from "../report/statistics.ts"

interface Request {
  readonly client: string
}

const CLIENTS = 10_000
const PATIENCE_MS = 2_000
const DECISIONS = 200_000
const IN_FLIGHT_REDIS = 64
/** There are more of these rounds than of rounds that load rules, because these rounds are short. */
const ROUNDS = 15

/**
 * CPU microseconds per decision for each round, under a rule without overrides and under a rule with 10,000
 * overrides.
 */
export interface OverrideCosts {
  readonly where: string
  readonly withoutUs: readonly number[]
  readonly withUs: readonly number[]
}

/** Measures decisions for 10,000 clients in turn, in memory and in Redis. Half of the clients have an override. */
export async function measureOverrides(): Promise<readonly OverrideCosts[]> {
  const inMemory = await measure("in memory", () => memoryStore(), 1)
  const server = await startServer()
  const client = await connect(server.port)
  try {
    const where = `in Redis, ${IN_FLIGHT_REDIS} in flight`
    const onRedis = () => redisStore({ client, timeoutMs: PATIENCE_MS })
    return [inMemory, await measure(where, onRedis, IN_FLIGHT_REDIS)]
  } finally {
    client.disconnect()
    await server.stop()
  }
}

async function measure(where: string, createStore: () => Store, inFlight: number): Promise<OverrideCosts> {
  const overrides = Object.fromEntries(
    Array.from({ length: CLIENTS }, (_, i) => [i % 2 === 0 ? nameOf(i) : `absent-${i}`, 2_000_000 + (i % 9)]),
  )
  const limiters = [
    limiterWith({}, "without", createStore()),
    limiterWith(overrides, "with", createStore()),
  ] as const
  const tookUs: [number[], number[]] = [[], []]
  for (let round = -2; round < ROUNDS; round++) {
    for (const which of rotated([0, 1] as const, Math.abs(round))) {
      const us = await decisionUs(limiters[which], inFlight)
      // The first rounds are a warm-up.
      if (round >= 0) tookUs[which].push(us)
    }
  }
  for (const limiter of limiters) await limiter.close()
  return { where, withoutUs: tookUs[0], withUs: tookUs[1] }
}

/** Returns the cost of a decision with overrides, as a multiple of the cost without overrides. */
export function timesWithout({ withoutUs, withUs }: OverrideCosts): number {
  return median(pairedRatios(withUs, withoutUs))
}

function limiterWith(
  overrides: Readonly<Record<string, number>>,
  service: string,
  store: Store,
): Limiter<Request> {
  return createLimiter<Request>({
    rules: [{ name: "client", field: "client", limit: 1_000_000, window: "1 day", overrides }],
    fields: { client: ({ client }) => client },
    service,
    store,
    storeTimeoutMs: PATIENCE_MS,
  })
}

async function decisionUs(limiter: Limiter<Request>, inFlight: number): Promise<number> {
  const { user, system } = process.cpuUsage()
  let next = 0
  const ask = async (): Promise<void> => {
    while (next < DECISIONS) await limiter.decide({ client: nameOf(next++ % CLIENTS) })
  }
  await Promise.all(Array.from({ length: inFlight }, ask))
  const after = process.cpuUsage()
  return (after.user + after.system - user - system) / DECISIONS
}

/** Returns a new string in each call, because a request also contains a new string, whose hash is not computed yet. */
function nameOf(client: number): string {
  return `client-${client}`
}
