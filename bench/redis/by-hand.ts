import { randomUUID } from "node:crypto"
import { setTimeout } from "node:timers/promises"
import type { Redis } from "ioredis"
import type { Contender, Setup } from "../load/contender.ts"
import { connect } from "./connect.ts"

/**
 * Creates a contender that counts nothing. It calls a script with arguments of the usual length, which is the minimum
 * cost of a decision in Redis.
 */
export async function byEmptyScript({ port, limits: [first] }: Setup): Promise<Contender<unknown>> {
  const client = await connect(port)
  const { limit, windowMs } = first as Setup["limits"][number]
  const sha = String(await client.script("LOAD", "return { 1, 2, 3, 4, 5 }"))
  return {
    count: (key) => client.evalsha(sha, 1, `sl2:{7f}k3JxW0aQ7rBn5TzE${key}`, `[0,1,${limit},${windowMs},1]`),
    judge: () => "granted",
    judgeError: () => "failed",
  }
}

/** The TTL of a lock, after which it is free even if it was not released. */
const LOCK_MS = 1_000
const RETRY_MS = 1

/** Creates a contender that reads, decides and writes under a lock: SET NX PX, GET, SET, and DEL of the lock. */
export async function byLock({ port, limits: [first] }: Setup): Promise<Contender<boolean>> {
  const client = await connect(port)
  const { limit, windowMs } = first as Setup["limits"][number]
  return {
    async count(key) {
      const lock = `lock:${key}`
      while ((await client.set(lock, randomUUID(), "PX", LOCK_MS, "NX")) === null) await setTimeout(RETRY_MS)
      try {
        const count = Number((await client.get(`count:${key}`)) ?? 0)
        if (count >= limit) return false
        if (count === 0) await client.set(`count:${key}`, 1, "PX", windowMs)
        else await client.set(`count:${key}`, count + 1, "KEEPTTL")
        return true
      } finally {
        await client.del(lock)
      }
    },
    judge: (granted) => (granted ? "granted" : "refused"),
    judgeError: () => "failed",
  }
}

/**
 * Creates a contender that reads, decides and writes in a WATCH transaction. If another client has written in the
 * meantime, it retries. This method needs a connection for each request in flight.
 */
export async function byWatch({ port, limits: [first] }: Setup): Promise<Contender<boolean>> {
  const idle: Redis[] = []
  const { limit, windowMs } = first as Setup["limits"][number]
  return {
    async count(key) {
      const client = idle.pop() ?? (await connect(port))
      const name = `watch:${key}`
      try {
        for (;;) {
          await client.watch(name)
          const count = Number((await client.get(name)) ?? 0)
          if (count >= limit) {
            await client.unwatch()
            return false
          }
          const change = client.multi().incr(name)
          if ((await (count === 0 ? change.pexpire(name, windowMs) : change).exec()) !== null) return true
        }
      } finally {
        idle.push(client)
      }
    },
    judge: (granted) => (granted ? "granted" : "refused"),
    judgeError: () => "failed",
  }
}
