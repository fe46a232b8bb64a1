import Koa from "koa"
import ratelimit from "koa-ratelimit"
import { type StartApp, serve } from "../app.ts"
import { connectRedis } from "./redis-client.ts"

// The options follow the README of koa-ratelimit, with the default header names. The client's address is read as
// Koa's page "Request" describes for one proxy. Each limit is a middleware with its own namespace.
export const start: StartApp = async (setup) => {
  const client = await connectRedis(setup)
  const app = new Koa({ proxy: true, maxIpsCount: 1 })
  // Without a listener, Koa logs each error of a middleware.
  app.silent = true
  for (const { limit, windowMs } of setup.limits) {
    const options = {
      duration: windowMs,
      max: limit,
      id: (context: { ip: string }) => context.ip,
      namespace: `limit:${windowMs}`,
    }
    app.use(
      client === undefined
        ? ratelimit({ ...options, driver: "memory", db: new Map() })
        : ratelimit({ ...options, driver: "redis", db: client }),
    )
  }
  app.use((context) => {
    context.body = { hello: "world" }
  })
  return serve(app.callback(), () => client?.disconnect())
}
