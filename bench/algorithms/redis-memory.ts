import { setTimeout } from "node:timers/promises"
import type { StoreResult } from "@sluice/core/stores"
import { redisStore } from "@sluice/redis"
import type { Redis } from "ioredis"
import type { Contender } from "../load/contender.ts"
import { drive } from "../load/drive.ts"
import { connect } from "../redis/connect.ts"
import { type RedisServer, usedMemory } from "../redis/server.ts"
import { type Filling, keepsParts, takesOf, weighedPolicy } from "./filling.ts"
import { type Kind, kindOf } from "./kinds.ts"

export interface RedisBytes {
  /** Growth of Redis' memory per client: key, value, expiry and tables. */
  readonly aClient: number
  /** Length of the value alone, in characters. */
  readonly value: number
  readonly clients: number
}

const IN_FLIGHT = 64
const PATIENCE_MS = 5_000
const COPIES_A_CALL = 2_000
/** Time in which Redis finishes growing its tables. */
const SETTLED_MS = 500
const TEMPLATES = "template:"
const COPIED_WITHIN_MS = 3_600_000
/** A window contains 60 sub-windows of a tenth of a second each. */
const SHORT_WINDOW_MS = 6_000

/**
 * A scale for the counters of many clients in Redis. The store creates the keys itself, by one request per client.
 * Then COPY replaces each key with a copy of a counter that the store wrote for one client. Without COPY, filling
 * each counter with requests would take hours.
 */
export class RedisScale {
  readonly #server: RedisServer
  readonly #client: Redis
  readonly #keys: readonly string[]
  readonly #before: number

  private constructor(server: RedisServer, client: Redis, keys: readonly string[], before: number) {
    this.#server = server
    this.#client = client
    this.#keys = keys
    this.#before = before
  }

  static async open(server: RedisServer, clients: number): Promise<RedisScale> {
    const client = await connect(server.port)
    const store = redisStore({ client, timeoutMs: PATIENCE_MS })
    const policy = weighedPolicy(kindOf("sliding-window"))
    const contender: Contender<StoreResult> = {
      count: (key) => store.take([{ policy, partition: key, cost: 1, shadow: false }]),
      judge: ({ granted }) => (granted ? "granted" : "refused"),
      judgeError: () => "failed",
    }
    const fill = async (count: number): Promise<void> => {
      const driven = await drive(
        contender as Contender,
        Uint32Array.from({ length: count }, (_, index) => index),
        IN_FLIGHT,
      )
      if (driven.failed + driven.refused > 0) throw new Error(`${driven.failed} requests failed`)
    }
    // Create connections, buffers and scripts before the memory is measured.
    await fill(1_000)
    await server.command("FLUSHALL", "SYNC")
    const before = await usedMemory(server)
    await fill(clients)
    const keys: string[] = []
    for (let cursor = "0"; ; ) {
      const [next, some] = await client.scan(cursor, "COUNT", 1_000)
      keys.push(...some)
      if (next === "0") break
      cursor = next
    }
    store.close()
    const distinct = [...new Set(keys)]
    if (distinct.length !== clients) throw new Error(`${distinct.length} keys for ${clients} clients`)
    return new RedisScale(server, client, distinct, before)
  }

  async weigh(kind: Kind, filling: Filling): Promise<RedisBytes> {
    const template = await this.#templateOf(kind, filling)
    for (let from = 0; from < this.#keys.length; from += COPIES_A_CALL) {
      const pipeline = this.#client.pipeline()
      for (const key of this.#keys.slice(from, from + COPIES_A_CALL)) pipeline.copy(template, key, "REPLACE")
      const replies = (await pipeline.exec()) ?? []
      for (const [error, copied] of replies)
        if (error !== null || copied !== 1) throw error ?? new Error(`${template} was not copied`)
    }
    const value = await this.#lengthOf(template)
    await this.#client.unlink(template)
    await setTimeout(SETTLED_MS)
    const clients = Number(await this.#server.command("DBSIZE"))
    if (clients !== this.#keys.length) throw new Error(`${clients} keys for ${this.#keys.length} clients`)
    return { aClient: ((await usedMemory(this.#server)) - this.#before) / clients, value, clients }
  }

  /** Returns the number of characters in a string, or in the fields and values of a hash. */
  async #lengthOf(key: string): Promise<number> {
    if ((await this.#client.type(key)) !== "hash") return this.#client.strlen(key)
    return Object.entries(await this.#client.hgetall(key))
      .flat()
      .join("").length
  }

  close(): void {
    this.#client.disconnect()
  }

  /** Fills the counter of one client and returns its key. The time is simulated unless the kind needs real time. */
  async #templateOf(kind: Kind, filling: Filling): Promise<string> {
    if (kind.members.algorithm === "sliding-window-strict") await this.#fillInRealTime(kind, filling)
    else await this.#fill(kind, filling)
    const [key, ...others] = await this.#client.keys(`${TEMPLATES}*`)
    if (key === undefined || others.length > 0) throw new Error(`${kind.name} wrote not one key`)
    // Extend the expiry, because a bucket's key expires within seconds and a million copies take longer. The expiry
    // does not change the size of a key.
    await this.#client.pexpire(key, COPIED_WITHIN_MS)
    return key
  }

  /**
   * Fills a strict window in real time, because a store with a clock option stores a strict window in another format.
   */
  async #fillInRealTime(kind: Kind, filling: Filling): Promise<void> {
    const store = redisStore({ client: this.#client, prefix: TEMPLATES, timeoutMs: PATIENCE_MS })
    const hours = weighedPolicy(kind)
    const policy = { ...hours, windowMs: SHORT_WINDOW_MS }
    const bucketMs = SHORT_WINDOW_MS / (hours.buckets as number)
    for (const { cost } of takesOf(kind, filling)) {
      await setTimeout(bucketMs - (Date.now() % bucketMs) + 1)
      const answer = await store.take([{ policy, partition: "one", cost, shadow: false }])
      if (answer?.granted !== true) throw new Error(`${kind.name} refused what fits`)
    }
    store.close()
  }

  async #fill(kind: Kind, filling: Filling): Promise<void> {
    let nowMs = Date.now()
    const store = redisStore({
      client: this.#client,
      prefix: TEMPLATES,
      timeoutMs: PATIENCE_MS,
      // Without a clock the scripts write the shortest possible value.
      ...(keepsParts(kind) ? { clock: { now: () => nowMs } } : {}),
    })
    const policy = weighedPolicy(kind)
    const startMs = nowMs
    for (const { afterMs, cost } of takesOf(kind, filling)) {
      nowMs = startMs + afterMs
      const answer = await store.take([{ policy, partition: "one", cost, shadow: false }])
      if (answer?.granted !== true) throw new Error(`${kind.name} refused what fits, ${afterMs} ms later`)
    }
    store.close()
  }
}
