import { createLimiter, memoryStore } from "@sluice/core"
import { createGuard, type HeaderFields } from "@sluice/core/adapters"
import type { Policy } from "@sluice/core/stores"
import { MemoryStore } from "express-rate-limit"
import { RateLimiterMemory } from "rate-limiter-flexible"

const WINDOW_MS = 3_600_000

/**
 * A limiter that counts a client's requests one at a time. The limiter responds synchronously, or with a promise that
 * is awaited.
 */
export type Contender =
  | { readonly answers: "at-once"; readonly count: (key: string) => unknown }
  | { readonly answers: "later"; readonly count: (key: string) => Promise<unknown> }

/** Creates each contender with a limit per hour, set up as its documentation recommends. */
export const CONTENDERS: Readonly<Record<string, (limit: number) => Contender>> = {
  "sluice take": (limit) => {
    const store = memoryStore()
    const policy = policyOf(limit)
    return {
      answers: "at-once",
      count: (key) => store.take([{ policy, partition: key, cost: 1, shadow: false }]),
    }
  },
  "sluice take, awaited": (limit) => {
    const store = memoryStore()
    const policy = policyOf(limit)
    return {
      answers: "later",
      count: async (key) => store.take([{ policy, partition: key, cost: 1, shadow: false }]),
    }
  },
  "sluice decide": (limit) => {
    const limiter = createLimiter({ limit, window: WINDOW_MS })
    return { answers: "later", count: (key) => limiter.decide({ remoteAddress: key }) }
  },
  "sluice decide, by month": (limit) => {
    const limiter = createLimiter({ limit, per: "month", timeZone: "Europe/Berlin", anchor: () => 31 })
    return { answers: "later", count: (key) => limiter.decide({ remoteAddress: key }) }
  },
  "sluice guard.check": (limit) => {
    const guard = createGuard<object>({ limit, window: WINDOW_MS })
    const headers: HeaderFields = { host: "localhost", accept: "*/*" }
    return {
      answers: "at-once",
      count: (key) => guard.check({ method: "GET", url: "/", headers, remoteAddress: key }, {}),
    }
  },
  "rate-limiter-flexible consume": (limit) => {
    const limiter = new RateLimiterMemory({ points: limit, duration: WINDOW_MS / 1000 })
    return { answers: "later", count: (key) => limiter.consume(key) }
  },
  "express-rate-limit increment": () => {
    const store = new MemoryStore()
    // The middleware passes all of its options to the store, which reads only this option.
    store.init({ windowMs: WINDOW_MS } as Parameters<MemoryStore["init"]>[0])
    return { answers: "later", count: (key) => store.increment(key) }
  },
  "Map of objects": (limit) => {
    const map = new Map<string, { count: number; resetAt: number }>()
    return {
      answers: "at-once",
      count: (key) => {
        const now = Date.now()
        const entry = map.get(key)
        if (entry === undefined || entry.resetAt <= now) {
          map.set(key, { count: 1, resetAt: now + WINDOW_MS })
          return true
        }
        return ++entry.count <= limit
      },
    }
  },
}

function policyOf(limit: number): Policy {
  return {
    name: "ip-1h",
    counter: "k3JxW0aQ7rBn5TzE",
    algorithm: "sliding-window",
    limit,
    windowMs: WINDOW_MS,
    align: "epoch",
  }
}
