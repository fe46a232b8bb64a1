import { memoryStore, type Policy } from "@sluice/core"
import { MemoryStore } from "express-rate-limit"
import { RateLimiterMemory } from "rate-limiter-flexible"

export const WINDOW_MS = 60_000

/** What keeps a counter for each client. The time is given, so that a window passes without being waited for. */
export interface Contender {
  /** Counts one request of a client at that time. */
  count(key: string, nowMs: number): void
  /** Removes what has expired at that time, where that is an act of its own and not part of `count`. */
  sweep?(nowMs: number): void
  /** Counters kept now, where the contender tells. */
  size?(): number
}

const LIMIT = 100

/** Each contender with room for so many counters, where it has a bound. */
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
        store.take([[{ policy, partition: key, cost: 1, shadow: false }]])
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
  // The peers keep the wall clock's time: their windows do not pass here, so only their growth is measured.
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
