import { type GuardOptions, manualClock } from "@sluice/core"
import { rateLimit as sluice } from "@sluice/koa"
import type { Redis } from "ioredis"
import Koa, { type Context, type Middleware } from "koa"
import { vi } from "vitest"
import type { App, Pair } from "../pairs.ts"

// It reads its clock when it is loaded, and counts on from there.
vi.useFakeTimers({ toFake: ["Date", "hrtime"], now: manualClock().now() })
const { default: peer } = await import("koa-ratelimit")
vi.useRealTimers()

export { peer }

export type PeerOptions = Parameters<typeof peer>[0]

/** Behind a proxy of the tests that Koa believes. */
export function appOf(...middleware: readonly Middleware[]): App {
  const app = new Koa()
  app.proxy = true
  // Koa would print the errors of the tests.
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

/** The options of the memory driver, with a memory of its own. */
export const inMemory = (): { driver: "memory"; db: Map<string, unknown> } => ({
  driver: "memory",
  db: new Map(),
})
/** Those of the Redis driver. */
export const inRedis = (db: Redis): { driver: "redis"; db: Redis } => ({ driver: "redis", db })

/** An app with koa-ratelimit, one a minute in memory where nothing else is said. */
export const before = (options: PeerOptions, ...first: readonly Middleware[]): Pair["before"] => {
  return () => appOf(...first, peer({ ...inMemory(), duration: 60_000, max: 1, ...options }))
}

/** The same with Sluice. */
export const after = (
  options: Partial<GuardOptions<Context>>,
  ...first: readonly Middleware[]
): Pair["after"] => {
  return (clock) => {
    const all = { limit: 1, window: "1 minute", trustedProxies: 1, clock, ...options }
    return appOf(...first, sluice(all as GuardOptions<Context>))
  }
}
