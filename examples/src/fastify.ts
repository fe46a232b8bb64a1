import type { LimiterOptions } from "@sluice/core"
import { rateLimit } from "@sluice/fastify"
import Fastify, { type FastifyInstance, type FastifyRequest } from "fastify"
import { sharedStore } from "./shared-store.ts"

type Options = Pick<LimiterOptions<FastifyRequest>, "clock" | "service" | "store" | "trustedProxies">

/** An app with a limit for all of it and a stricter one for a dear route. Tests and the demo set the options. */
export async function createApp(options: Options = {}): Promise<FastifyInstance> {
  const app = Fastify()
  await app.register(rateLimit, { ...options, limit: 100, window: "1 minute" })

  app.get("/", (request) => ({ hello: "world", remaining: request.rateLimit?.remaining }))

  // In place of the app's limit: a search takes from this one alone.
  const searches = { name: "search", limit: 3, window: "1 second" }
  app.get("/search", { config: { rateLimit: searches } }, (request) => ({
    found: [],
    remaining: request.rateLimit?.remaining,
  }))
  return app
}

// Started, not imported. TRUSTED_PROXIES is how many proxies stand in front: often 1 in production. With REDIS_URL all
// instances count together.
if (process.argv[1] === import.meta.filename) {
  const app = await createApp({ ...sharedStore(), trustedProxies: Number(process.env.TRUSTED_PROXIES ?? 0) })
  console.log(`Fastify listens on ${await app.listen({ port: Number(process.env.PORT ?? 3000) })}`)
}
