import { rateLimit } from "@sluice/fastify"
import Fastify, { type FastifyInstance } from "fastify"
import { logRequest, type WriteLine } from "./log-request.ts"
import { fromEnvironment, type Surroundings } from "./surroundings.ts"

/**
 * Creates an app with a limit for all routes, and a stricter limit for an expensive route. With `log`, the app writes
 * a line for each request.
 */
export async function createApp(surroundings: Surroundings = {}, log?: WriteLine): Promise<FastifyInstance> {
  const app = Fastify()
  app.addHook("onRequest", async (request, reply) =>
    logRequest(log, request.raw, reply.raw, () => request.rateLimit),
  )
  await app.register(rateLimit, { ...surroundings, limit: 100, window: "1 minute" })

  app.get("/", (request) => ({ hello: "world", remaining: request.rateLimit?.remaining }))

  // This replaces the app's limit: a search counts only against this one.
  const searches = { name: "search", limit: 3, window: "1 second" }
  app.get("/search", { config: { rateLimit: searches } }, (request) => ({
    found: [],
    remaining: request.rateLimit?.remaining,
  }))
  return app
}

if (process.argv[1] === import.meta.filename) {
  const app = await createApp(fromEnvironment(), console.log)
  console.log(`Fastify listens on ${await app.listen({ port: Number(process.env.PORT || 3000) })}`)
}
