import type { RateLimit } from "@sluice/express"
import express, { type RequestHandler } from "express"
import type { Redis } from "ioredis"
import type { App } from "../pairs.ts"

/** Creates an app that trusts one proxy. The last address of X-Forwarded-For identifies the client. */
export function appOf(...limiters: readonly (RequestHandler & Partial<Pick<RateLimit, "limiter">>)[]): App {
  const app = express().set("trust proxy", 1)
  for (const limiter of limiters) app.use(limiter)
  app.use("/fail", (_req, res) => void res.sendStatus(500))
  app.use("/missing", (_req, res) => void res.sendStatus(404))
  app.use((_req, res) => void res.send("ok"))
  const close = async (): Promise<void> => {
    for (const limiter of limiters) await limiter.limiter?.close()
  }
  return { listener: app, close }
}

/** Returns a `sendCommand` as in the documentation of rate-limit-redis. */
export const callOf =
  (client: Redis) =>
  (command: string, ...args: string[]): Promise<never> =>
    client.call(command, ...args) as Promise<never>
