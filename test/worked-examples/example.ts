import { createLimiter, type Decision, type Limiter, memoryStore, type Store } from "@sluice/core"
import type { RateRule } from "@sluice/core/adapters"
import { type ManualClock, manualClock } from "@sluice/core/testing"
import { Redis } from "ioredis"
import { afterAll, afterEach, beforeAll, describe } from "vitest"
import type { RedisCommands } from "../../packages/redis/src/commands.ts"
import { RedisStore } from "../../packages/redis/src/redis-store.ts"
import { KeysOnAClock } from "../redis/keys-on-a-clock.ts"
import { type RedisServer, startRedis } from "../servers/redis-server.ts"

export const SECOND = 1_000
export const MINUTE: number = 60 * SECOND
export const HOUR: number = 60 * MINUTE

/** Midnight, which is the time 0:00 in every example. */
export const START_MS: number = Date.UTC(2024, 0, 1)

/** Creates an empty store whose counters expire by the clock. */
export type OpenStore = (clock: ManualClock) => Store

let made = 0

/** Creates a store in Redis, with the counter layout that apps use. */
export function onRedis(commands: RedisCommands, clock: ManualClock): Store {
  const options = { prefix: `example${made++}:`, denyCacheMs: 10_000, timeoutMs: 20_000 }
  return new RedisStore({ commands, clock, isWide: false, ...options })
}

/** Runs examples in memory, and in a real Redis whose keys expire by the example's clock. Closes their stores. */
export function inMemoryAndRedis(examples: (open: OpenStore) => void): void {
  const opened: Store[] = []
  const closing =
    (open: OpenStore): OpenStore =>
    (clock) => {
      const store = open(clock)
      opened.push(store)
      return store
    }
  afterEach(async () => {
    for (const store of opened.splice(0)) await store.close()
  })

  describe("with counters in memory,", () => examples(closing((clock) => memoryStore({ clock }))))

  describe("with counters in Redis,", () => {
    let server: RedisServer
    let client: Redis
    beforeAll(async () => {
      server = await startRedis()
      client = new Redis(server.port, server.host)
    })
    afterAll(async () => {
      client?.disconnect()
      await server?.stop()
    })
    examples(closing((clock) => onRedis(new KeysOnAClock(client, clock).expiring, clock)))
  })
}

/** A limiter for users, with a clock that starts at 0:00. */
export class Example {
  readonly limiter: Limiter<{ readonly id: string }>
  readonly #clock = manualClock(START_MS)
  #latest: Decision | undefined

  constructor(open: OpenStore, ...rules: readonly Omit<RateRule, "field">[]) {
    this.limiter = createLimiter<{ readonly id: string }>({
      rules: rules.map((rule) => ({ ...rule, field: "user_id" })),
      fields: { user_id: ({ id }) => id },
      service: "example",
      store: open(this.#clock),
      storeTimeoutMs: 20_000,
      clock: this.#clock,
    })
  }

  /** The decision on the last request. */
  get latest(): Decision {
    return this.#latest as Decision
  }

  /** Sends requests concurrently at the given time. Returns the number of admitted requests. */
  async ask(atMs: number, requests = 1, id = "alice"): Promise<number> {
    this.#clock.set(START_MS + atMs)
    const decisions = await Promise.all(Array.from({ length: requests }, () => this.limiter.decide({ id })))
    this.#latest = decisions.at(-1)
    return decisions.filter(({ allowed }) => allowed).length
  }

  /** Returns the used units at the given time, without making a request. */
  async used(atMs: number, id = "alice"): Promise<number> {
    this.#clock.set(START_MS + atMs)
    const { limit, remaining } = await this.limiter.peek({ id })
    return limit - remaining
  }
}

/** Returns the milliseconds of "2:25" or "20:23:12": which are hours, minutes and seconds. */
export function at(text: string): number {
  const [hours, minutes, seconds = 0] = text.split(":").map(Number) as [number, number, number?]
  return hours * HOUR + minutes * MINUTE + seconds * SECOND
}
