import { memoryStore } from "@sluice/core"
import type { Policy } from "@sluice/core/stores"
import { MemoryStore } from "express-rate-limit"
import { RateLimiterMemory } from "rate-limiter-flexible"

export const WINDOW_MS = 60_000

/**
 * A data structure that contains a counter for each client. The time is an argument, so that windows can pass without
 * waiting.
 */
export interface Contender {
  /** Counts one request of a client at `nowMs`. */
  count(key: string, nowMs: number): void
  /** Removes the counters that have expired at `nowMs`. Absent if `count` removes expired counters itself. */
  sweep?(nowMs: number): void
  /** Returns the number of counters. Absent if the contender does not expose it. */
  size?(): number
}

const LIMIT = 100

/** Creates each contender. If the contender has a bound, its bound is `maxKeys` counters. */
export const CONTENDERS: Readonly<Record<string, (maxKeys: number) => Contender>> = {
  "sluice memory store": (maxKeys) => {
    let nowMs = 0
    const store = memoryStore({ maxKeys, clock: { now: () => nowMs } })
    const policy: Policy = {
      name: "ip-1m",
      counter: "k3JxW0aQ7rBn5TzE",
      algorithm: "sliding-window",
      limit: LIMIT,
      windowMs: WINDOW_MS,
      align: "epoch",
    }
    return {
      count(key, now) {
        nowMs = now
        store.take([{ policy, partition: key, cost: 1, shadow: false }])
      },
      size: () => store.size,
    }
  },
  "Map of objects": () => {
    const map = new Map<string, { count: number; resetAt: number }>()
    return {
      count(key, nowMs) {
        const entry = map.get(key)
        if (entry === undefined || entry.resetAt <= nowMs)
          map.set(key, { count: 1, resetAt: nowMs + WINDOW_MS })
        else entry.count++
      },
      sweep(nowMs) {
        for (const [key, { resetAt }] of map) if (resetAt <= nowMs) map.delete(key)
      },
      size: () => map.size,
    }
  },
  // The peers use the wall clock, so their windows do not end during the measurement. Only their growth is measured.
  "rate-limiter-flexible": () => {
    const limiter = new RateLimiterMemory({ points: LIMIT, duration: 3600 })
    return { count: (key) => void limiter.consume(key) }
  },
  "express-rate-limit": () => {
    const store = new MemoryStore()
    store.init({ windowMs: 3_600_000 } as Parameters<MemoryStore["init"]>[0])
    return { count: (key) => void store.increment(key) }
  },
}
