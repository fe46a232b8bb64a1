import { rateLimit } from "@sluice/express"
import express from "express"
import { type AppSetup, type RunningApp, type StartApp, serve } from "../app.ts"
import { connectRedis } from "./redis-client.ts"
import { optionsOf } from "./sluice-options.ts"

export const start: StartApp = (setup) => startWith(setup)

/** Starts the app with the algorithm that the guide recommends for a limit that must hold in every window. */
export const startStrict: StartApp = (setup) => startWith(setup, "sliding-window-strict")

async function startWith(setup: AppSetup, algorithm?: "sliding-window-strict"): Promise<RunningApp> {
  const client = await connectRedis(setup)
  const limiter = rateLimit(optionsOf(setup, client, algorithm))
  const app = express()
  if (setup.mount !== "route") app.use(limiter)
  app.get("/", ...(setup.mount === "route" ? [limiter] : []), (_request, response) => {
    response.json({ hello: "world" })
  })
  return serve(app, async () => {
    await limiter.limiter.close()
    client?.disconnect()
  })
}
