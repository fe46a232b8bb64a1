import { rateLimit } from "@sluice/fastify"
import Fastify, { type FastifyInstance, type FastifyRequest } from "fastify"
import { accountOf } from "../authentication.ts"
import type { Surroundings } from "../surroundings.ts"

/**
 * Creates an app with limits on `GET /feed`: 10 per minute and 500 per hour for
 * each user, all or nothing.
 */
export async function createApp(
  surroundings: Surroundings = {},
): Promise<FastifyInstance> {
  const app = Fastify()
  await app.register(rateLimit, {
    ...surroundings,
    fields: {
      user: ({ headers }: FastifyRequest) => accountOf(headers.authorization)?.id,
    },
    // Use one limiter for both rules. Two limiters, one after the other, would
    // charge the hour for a request that the
    // minute refuses.
    rules: [
      { name: "minute", field: "user", limit: 10, window: "1 minute" },
      { name: "hour", field: "user", limit: 500, window: "1 hour" },
    ],
  })
  app.get("/feed", ({ rateLimit: decision }) => ({
    left: Object.fromEntries(
      decision?.checks.map(({ policy, remaining }) => [policy, remaining]) ?? [],
    ),
  }))
  return app
}
