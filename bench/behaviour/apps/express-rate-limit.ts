import { memoryStore } from "@sluice/core"
import { SluiceStore } from "@sluice/express-rate-limit-store"
import express from "express"
import { type Options, rateLimit, type Store } from "express-rate-limit"
import type { Redis } from "ioredis"
import { type RedisReply, RedisStore } from "rate-limit-redis"
import { type AppSetup, type Limit, type RunningApp, type StartApp, serve } from "../app.ts"
import { connectRedis } from "./redis-client.ts"

// The options follow the README of express-rate-limit, and the store and client follow the README of
// rate-limit-redis. The number of proxies follows the guide "Troubleshooting Proxy Issues". The page "Configuration"
// offers `passOnStoreError` for outages of the store. Each limit is a middleware, with a store that has its own
// prefix.
export const start: StartApp = (setup) =>
  startWith(setup, { passOnStoreError: true }, ({ windowMs }, client) => {
    if (client === undefined) return undefined
    return new RedisStore({
      prefix: `rl:${windowMs}:`,
      sendCommand: (command: string, ...args: string[]) =>
        client.call(command, ...args) as Promise<RedisReply>,
    })
  })

/** Starts the same app with Sluice's store instead of rate-limit-redis. */
export const startOnSluice: StartApp = (setup) =>
  startWith(setup, { logger: { warn() {}, error() {} } }, ({ windowMs }, client) => {
    const { storeTimeoutMs, maxKeys } = setup
    const place = client === undefined ? { store: memoryStore({ maxKeys }) } : { client }
    return new SluiceStore({ ...place, prefix: `rl:${windowMs}:`, storeTimeoutMs })
  })

async function startWith(
  setup: AppSetup,
  options: Partial<Options>,
  createStore: (limit: Limit, client: Redis | undefined) => Store | undefined,
): Promise<RunningApp> {
  const client = await connectRedis(setup)
  const stores: (Store | undefined)[] = []
  const limiters = setup.limits.map(({ limit, windowMs }) => {
    const store = createStore({ limit, windowMs }, client)
    stores.push(store)
    return rateLimit({
      ...{ windowMs, limit, ...(store !== undefined && { store }) },
      standardHeaders: "draft-8",
      legacyHeaders: false,
      ipv6Subnet: 56,
      ...options,
    })
  })
  const app = express()
  app.set("trust proxy", 1)
  if (setup.mount !== "route") app.use(...limiters)
  app.get("/", ...(setup.mount === "route" ? limiters : []), (_request, response) => {
    response.json({ hello: "world" })
  })
  return serve(app, async () => {
    for (const store of stores) await store?.shutdown?.()
    client?.disconnect()
  })
}
