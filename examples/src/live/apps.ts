import type { Limiter } from "@sluice/core"
import * as expressAdapter from "@sluice/express"
import * as fastifyAdapter from "@sluice/fastify"
import * as koaAdapter from "@sluice/koa"
import express, { type Request } from "express"
import Fastify, { type FastifyRequest } from "fastify"
import Koa, { type Context } from "koa"
import { createSharedLimiter, type Surroundings } from "../registered-rules/app.ts"

/** An app that listens. */
export interface LiveApp {
  readonly limiter: Limiter<never>
  close(): Promise<void>
}

/** Starts the same app in each framework: one route, limited by rules from DynamoDB with counters in Redis. */
export const START: Readonly<Record<string, (surroundings: Surroundings, port: number) => Promise<LiveApp>>> =
  {
    async express(surroundings, port) {
      const limiter = await createSharedLimiter<Request>(surroundings)
      const app = express()
      app.use(expressAdapter.rateLimit({ limiter }))
      app.get("/orders", (_req, res) => void res.json({ orders: [] }))
      const server = app.listen(port)
      await new Promise((resolve, reject) => server.once("listening", resolve).once("error", reject))
      return { limiter, close: async () => void (await new Promise((resolve) => server.close(resolve))) }
    },

    async fastify(surroundings, port) {
      const limiter = await createSharedLimiter<FastifyRequest>(surroundings)
      const app = Fastify()
      await app.register(fastifyAdapter.rateLimit, { limiter })
      app.get("/orders", () => ({ orders: [] }))
      await app.listen({ port })
      return { limiter, close: () => app.close() }
    },

    async koa(surroundings, port) {
      const limiter = await createSharedLimiter<Context>(surroundings)
      const app = new Koa()
      app.use(koaAdapter.rateLimit({ limiter }))
      app.use((context) => {
        context.body = { orders: [] }
      })
      const server = app.listen(port)
      await new Promise((resolve, reject) => server.once("listening", resolve).once("error", reject))
      return { limiter, close: async () => void (await new Promise((resolve) => server.close(resolve))) }
    },
  }
