import Koa from "koa"
import ratelimit from "koa-ratelimit"
import { type StartApp, serve } from "../app.ts"
import { connectRedis } from "./redis-client.ts"

// As in its README, with the names of headers that it has by default; who asks is what Koa's page "Request" says of one
// proxy. Several limits are several middlewares, each with a name space of its own.
export const start: StartApp = async (setup) => {
  const client = await connectRedis(setup)
  const app = new Koa({ proxy: true, maxIpsCount: 1 })
  // It logs each error of a middleware otherwise.
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
