import { rateLimit } from "@sluice/fastify"
import Fastify, { type FastifyInstance, type FastifyRequest } from "fastify"
import { accountOf } from "../authentication.ts"
import type { Surroundings } from "../surroundings.ts"

/** Creates an app that limits each user by minute and by hour. */
export async function createApp(
  surroundings: Surroundings = {},
): Promise<FastifyInstance> {
  const app = Fastify()
  await app.register(rateLimit, {
    ...surroundings,
    fields: {
      user: ({ headers }: FastifyRequest) => accountOf(headers.authorization)?.id,
    },
    // Two limiters would charge the hour for what the minute refuses.
    rules: [
      { name: "minute", field: "user", limit: 10, window: "1 minute" },
      { name: "hour", field: "user", limit: 500, window: "1 hour" },
    ],
  })
  app.get("/feed", async () => [])
  return app
}
