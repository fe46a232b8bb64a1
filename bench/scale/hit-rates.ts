import type { Clock, Store } from "@sluice/core"
import type { Policy, StoreResult } from "@sluice/core/stores"
import { redisStore } from "@sluice/redis"
import { leasedStore, writeBackStore } from "@sluice/scale"
import type { Redis } from "ioredis"
import { freshAddress } from "../clients/addresses.ts"
import { zipfSequence } from "../clients/sequence.ts"
import { connect } from "../redis/connect.ts"
import { callsSince, type RedisServer, usageOf } from "../redis/server.ts"
import { printTable } from "../report/table.ts"
import { START_MS, Timeline } from "./timeline.ts"

const REQUESTS_A_MS = 5
const WINDOW_MS = 30_000
const PATIENCE_MS = 20_000
const CALLS = ["evalsha"]
/**
 * Interval at which the expiry of all keys is extended, in simulated milliseconds. Otherwise a key might expire too
 * early, because keys expire in real time and a busy machine simulates slowly. A key that the store has written
 * expires after a window or later.
 */
const EXTENDED_EVERY_MS = WINDOW_MS / 15
const EXTEND = 'for _, key in ipairs(redis.call("KEYS", "*")) do redis.call("PEXPIRE", key, 3600000) end'

/** The traffic of one process. The k-th most frequent client has a probability proportional to 1 / k. */
export interface ZipfTraffic {
  readonly clients: number
  /** Units of each client in a window. */
  readonly limit: number
  /** Table sizes of the write-back store, in counters. */
  readonly tables: readonly number[]
  /** Requests in this period are not counted. These requests only fill the tables. */
  readonly warmUpMs: number
  readonly forMs: number
  readonly seed: number
}

/** How a store made its decisions. All numbers except `calls` are shares of the decisions. */
export interface HitRate {
  readonly name: string
  /** Decisions from a count, lease or refusal that the process received in an earlier millisecond. */
  readonly hits: number
  /** Decisions that waited for Redis. */
  readonly waited: number
  /** Requests that were admitted. */
  readonly admitted: number
  /** Number of Redis calls per decision, including calls for which no request waits. */
  readonly calls: number
}

type OpenStore = (shared: Store, clock: Clock) => Store

function storesOf({ tables }: ZipfTraffic): readonly (readonly [name: string, open: OpenStore])[] {
  return [
    ["redisStore", (shared) => shared],
    ["leasedStore", (shared, clock) => leasedStore(shared, { clock })],
    ...tables.map((maxKeys): readonly [string, OpenStore] => {
      const name = `writeBackStore, maxKeys ${maxKeys.toLocaleString("en")}`
      return [name, (shared, clock) => writeBackStore(shared, { clock, maxKeys })]
    }),
  ]
}

/**
 * Measures how many decisions of one process need no Redis call. The stores and Redis are real, and the time is
 * simulated. The requests of a millisecond arrive at the same time, and the next millisecond begins when Redis has
 * replied.
 */
export async function measureHitRates(
  server: RedisServer,
  traffic: ZipfTraffic,
): Promise<readonly HitRate[]> {
  const { clients, warmUpMs, forMs, seed } = traffic
  const sequence = zipfSequence(clients, REQUESTS_A_MS * (warmUpMs + forMs), seed)
  const rates: HitRate[] = []
  for (const [name, open] of storesOf(traffic)) {
    await server.command("FLUSHALL", "SYNC")
    const client = await connect(server.port)
    try {
      rates.push({ name, ...(await rateOf(open, traffic, sequence, { server, client })) })
    } finally {
      client.disconnect()
    }
  }
  return rates
}

async function rateOf(
  open: OpenStore,
  { limit, warmUpMs, forMs }: ZipfTraffic,
  sequence: Uint32Array,
  { server, client }: { readonly server: RedisServer; readonly client: Redis },
): Promise<Omit<HitRate, "name">> {
  const timeline = new Timeline()
  const wait = (ms: number, signal?: AbortSignal) =>
    new Promise<void>((resolve, reject) => {
      signal?.addEventListener("abort", () => reject(signal.reason))
      timeline.after(ms, resolve)
    })
  const serverClock = { now: () => Math.floor(timeline.nowMs) }
  const shared = redisStore({ client, clock: serverClock, timeoutMs: PATIENCE_MS })
  const store = open(shared, { now: () => timeline.nowMs, wait })
  const policy: Policy = {
    ...{ name: "client", counter: "k3JxW0aQ7rBn5TzE", algorithm: "sliding-window", align: "epoch" },
    ...{ limit, windowMs: WINDOW_MS },
  }

  let counted = { hits: 0, waited: 0, admitted: 0 }
  const count = ({ granted, checks }: StoreResult): void => {
    if (granted) counted.admitted++
    // The age is absent if Redis made the decision, and 0 if the process received the count in this millisecond.
    if ((checks[0]?.ageMs ?? 0) > 0) counted.hits++
  }
  let before = await usageOf(server)
  let next = 0
  for (let ms = 0; ms < warmUpMs + forMs; ms++) {
    if (ms === warmUpMs) {
      counted = { hits: 0, waited: 0, admitted: 0 }
      before = await usageOf(server)
    }
    if (ms % EXTENDED_EVERY_MS === 0) await client.eval(EXTEND, 0)
    await timeline.until(START_MS + ms)
    const answers: PromiseLike<void>[] = []
    for (let i = 0; i < REQUESTS_A_MS; i++) {
      const partition = freshAddress(sequence[next++] as number)
      const answer = store.take([{ policy, partition, cost: 1, shadow: false }])
      if ("then" in answer) {
        counted.waited++
        answers.push(answer.then(count))
      } else {
        count(answer)
      }
    }
    await Promise.all(answers)
    // Redis replies in order, so it has also replied to the calls for which no request waits.
    await client.ping()
  }
  const decisions = REQUESTS_A_MS * forMs
  const calls = callsSince(before, await usageOf(server), CALLS) / decisions
  const { hits, waited, admitted } = counted
  await store.close()
  return {
    hits: hits / decisions,
    waited: waited / decisions,
    admitted: admitted / decisions,
    calls,
  }
}

/** Prints the shares in percent, and the calls for 1,000 decisions. */
export function printHitRates({ clients, limit }: ZipfTraffic, rates: readonly HitRate[]): void {
  printTable(
    `hit rates of one process: ${clients.toLocaleString("en")} clients by Zipf's law, ${REQUESTS_A_MS},000 requests ` +
      `a second, ${limit.toLocaleString("en")} in ${WINDOW_MS / 1_000} s for each client`,
    ["", "hits, %", "waited, %", "admitted, %", "calls for 1,000 decisions"],
    rates.map(({ name, hits, waited, admitted, calls }) => [
      name,
      ...[hits, waited, admitted].map((share) => (100 * share).toFixed(1)),
      (1_000 * calls).toFixed(0),
    ]),
  )
}
