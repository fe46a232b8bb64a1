import peer, { type RateLimitPluginOptions } from "@fastify/rate-limit"
import { type RateLimitOptions, rateLimit as sluice } from "@sluice/fastify"
import Fastify, { type FastifyInstance, type FastifyServerOptions } from "fastify"
import type { App, Pair } from "../pairs.ts"
import { quiet } from "../requests.ts"

/** A function that adds routes and hooks to an app. */
export type More = (app: FastifyInstance) => void | Promise<void>

async function served(app: FastifyInstance, more: More): Promise<App> {
  await more(app)
  if (!app.hasRoute({ method: "GET", url: "/" })) app.get("/", async () => "ok")
  await app.ready()
  return { listener: app.routing, close: () => app.close() }
}

/** Returns a function that creates an app with @fastify/rate-limit. Its default is one request a minute. */
export const before =
  (options: RateLimitPluginOptions, more: More = () => undefined, server: FastifyServerOptions = {}) =>
  async (): Promise<App> => {
    const app = Fastify(server)
    await app.register(peer, { max: 1, timeWindow: 60_000, ...options })
    return served(app, more)
  }

/** Creates an app with Sluice, with exactly these options. */
export async function registered(options: RateLimitOptions, more: More = () => undefined): Promise<App> {
  const app = Fastify()
  await app.register(sluice, options)
  return served(app, more)
}

/** Returns a function that creates an app with Sluice. The default limit is one request per minute. */
export const after =
  (options: Partial<RateLimitOptions>, more?: More): Pair["after"] =>
  (clock) =>
    registered({ limit: 1, window: "1 minute", clock, logger: quiet, ...options } as RateLimitOptions, more)
