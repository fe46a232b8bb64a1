import { rateLimit } from "@sluice/koa"
import Koa from "koa"
import { type StartApp, serve } from "../app.ts"
import { connectRedis } from "./redis-client.ts"
import { optionsOf } from "./sluice-options.ts"

export const start: StartApp = async (setup) => {
  const client = await connectRedis(setup)
  const limiter = rateLimit(optionsOf(setup, client))
  const app = new Koa()
  app.use(limiter)
  app.use((context) => {
    context.body = { hello: "world" }
  })
  return serve(app.callback(), async () => {
    await limiter.limiter.close()
    client?.disconnect()
  })
}
