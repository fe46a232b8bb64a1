import express from "express"
import { rateLimit } from "express-rate-limit"
import { type RedisReply, RedisStore } from "rate-limit-redis"
import { type StartApp, serve } from "../app.ts"
import { connectRedis } from "./redis-client.ts"

// The options are those in the README of express-rate-limit, and the store and client those in the README of
// rate-limit-redis. The number of proxies follows the guide "Troubleshooting Proxy Issues". The page "Configuration"
// offers `passOnStoreError` for outages of the store. Each limit is a middleware, whose store has its own prefix.
export const start: StartApp = async (setup) => {
  const client = await connectRedis(setup)
  const limiters = setup.limits.map(({ limit, windowMs }) =>
    rateLimit({
      windowMs,
      limit,
      standardHeaders: "draft-8",
      legacyHeaders: false,
      ipv6Subnet: 56,
      passOnStoreError: true,
      ...(client === undefined
        ? {}
        : {
            store: new RedisStore({
              prefix: `rl:${windowMs}:`,
              sendCommand: (command: string, ...args: string[]) =>
                client.call(command, ...args) as Promise<RedisReply>,
            }),
          }),
    }),
  )
  const app = express()
  app.set("trust proxy", 1)
  if (setup.mount !== "route") app.use(...limiters)
  app.get("/", ...(setup.mount === "route" ? limiters : []), (_request, response) => {
    response.json({ hello: "world" })
  })
  return serve(app, () => client?.disconnect())
}
