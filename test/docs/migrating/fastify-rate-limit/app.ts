import peer, { type RateLimitPluginOptions } from "@fastify/rate-limit"
import { type RateLimitOptions, rateLimit as sluice } from "@sluice/fastify"
import Fastify, { type FastifyInstance, type FastifyServerOptions } from "fastify"
import type { App, Pair } from "../pairs.ts"
import { quiet } from "../requests.ts"

/** What an app has beside its limiter: routes, hooks. */
export type More = (app: FastifyInstance) => void | Promise<void>

async function served(app: FastifyInstance, more: More): Promise<App> {
  await more(app)
  if (!app.hasRoute({ method: "GET", url: "/" })) app.get("/", async () => "ok")
  await app.ready()
  return { listener: app.routing, close: () => app.close() }
}

/** An app with @fastify/rate-limit, one a minute where nothing else is said. */
export const before =
  (options: RateLimitPluginOptions, more: More = () => undefined, server: FastifyServerOptions = {}) =>
  async (): Promise<App> => {
    const app = Fastify(server)
    await app.register(peer, { max: 1, timeWindow: 60_000, ...options })
    return served(app, more)
  }

/** An app with Sluice, with these options and no others. */
export async function registered(options: RateLimitOptions, more: More = () => undefined): Promise<App> {
  const app = Fastify()
  await app.register(sluice, options)
  return served(app, more)
}

/** The same, one a minute where nothing else is said. */
export const after =
  (options: Partial<RateLimitOptions>, more?: More): Pair["after"] =>
  (clock) =>
    registered({ limit: 1, window: "1 minute", clock, logger: quiet, ...options } as RateLimitOptions, more)
