import { NestFactory } from "@nestjs/core"
import {
  FastifyAdapter,
  type NestFastifyApplication,
} from "@nestjs/platform-fastify"
import { rateLimit } from "@sluice/fastify"
import type { Surroundings } from "../surroundings.ts"

/** Creates an app. `@RouteConfig({ rateLimit: { … } })` limits one route. */
export async function createApp(
  module: new () => unknown,
  surroundings: Surroundings = {},
) {
  const app = await NestFactory.create<NestFastifyApplication>(
    module,
    new FastifyAdapter(),
  )
  await app.register(rateLimit, { ...surroundings, limit: 100, window: "1 minute" })
  return app
}
