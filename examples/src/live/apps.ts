import type { RequestListener } from "node:http"
import type { Limiter } from "@sluice/core"
import * as fastifyAdapter from "@sluice/fastify"
import * as koaAdapter from "@sluice/koa"
import Fastify, { type FastifyInstance, type FastifyRequest } from "fastify"
import Koa, { type Context } from "koa"
import { createApp, createSharedLimiter, type Surroundings } from "../registered-rules/app.ts"

interface LiveApp {
  readonly app: RequestListener | FastifyInstance
  readonly limiter: Pick<Limiter, "close">
}

/** Creates the same app in each framework: a single route, limited by rules from DynamoDB with counters in Redis. */
export const CREATE: Readonly<Record<string, (surroundings: Surroundings) => Promise<LiveApp>>> = {
  express: createApp,

  async fastify(surroundings) {
    const limiter = await createSharedLimiter<FastifyRequest>(surroundings)
    const app = Fastify()
    await app.register(fastifyAdapter.rateLimit, { limiter })
    app.get("/orders", () => ({ orders: [] }))
    return { app, limiter }
  },

  async koa(surroundings) {
    const limiter = await createSharedLimiter<Context>(surroundings)
    const app = new Koa()
    app.use(koaAdapter.rateLimit({ limiter }))
    app.use((context) => {
      context.body = { orders: [] }
    })
    return { app: app.callback(), limiter }
  },
}
