import { createRequire } from "node:module"
import { manualClock } from "@sluice/core/testing"
import { type RateLimitOptions, rateLimit as sluice } from "@sluice/koa"
import type { Redis } from "ioredis"
import Koa, { type Middleware } from "koa"
import type createPeer from "koa-ratelimit"
import { vi } from "vitest"
import type { App, Pair } from "../pairs.ts"

// koa-ratelimit and async-ratelimiter, its limiter on Redis, read their clock when they are loaded, and their clock
// continues from that time. Both modules are loaded again, because another test file of this process may have loaded
// them before.
const require = createRequire(import.meta.url)
for (const path of Object.keys(require.cache)) {
  if (/\/node_modules\/(koa-ratelimit|async-ratelimiter)\//.test(path)) delete require.cache[path]
}
vi.useFakeTimers({ toFake: ["Date", "hrtime"], now: manualClock().now() })
export const peer: typeof createPeer = require("koa-ratelimit")
vi.useRealTimers()

export type PeerOptions = Parameters<typeof createPeer>[0]

/** Creates an app that trusts its proxy. */
export function appOf(...middleware: readonly Middleware[]): App {
  const app = new Koa()
  app.proxy = true
  // Without a listener, Koa would print the errors of the tests.
  app.silent = true
  for (const each of middleware) app.use(each)
  app.use((ctx) => {
    ctx.body = "ok"
  })
  const close = async (): Promise<void> => {
    for (const each of middleware)
      if ("limiter" in each) await (each as ReturnType<typeof sluice>).limiter.close()
  }
  return { listener: app.callback(), close }
}

/** Returns the options of the memory driver, with a separate memory. */
export const inMemory = (): { driver: "memory"; db: Map<string, unknown> } => ({
  driver: "memory",
  db: new Map(),
})
/** Returns the options of the Redis driver. */
export const inRedis = (db: Redis): { driver: "redis"; db: Redis } => ({ driver: "redis", db })

/**
 * Returns a function that creates an app with koa-ratelimit. The default limit is one request per minute, in memory.
 */
export const before = (options: PeerOptions, ...first: readonly Middleware[]): Pair["before"] => {
  return () => appOf(...first, peer({ ...inMemory(), duration: 60_000, max: 1, ...options }))
}

/** Returns a function that creates an app with Sluice, with the same default. */
export const after = (options: Partial<RateLimitOptions>, ...first: readonly Middleware[]): Pair["after"] => {
  return (clock) => {
    const all = { limit: 1, window: "1 minute", trustedProxies: 1, clock, ...options }
    return appOf(...first, sluice(all as RateLimitOptions))
  }
}
