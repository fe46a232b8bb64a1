import * as adapter from "@sluice/fastify"
import type { FastifyInstance } from "fastify"
import { onStandingClock } from "../standing-clock.ts"
import { apps } from "./apps.ts"
import { limiting } from "./limiting.ts"
import type { Served } from "./prelude.ts"

const { rateLimit } = onStandingClock("@sluice/fastify", adapter) as unknown as typeof adapter

/** The values for blocks about Fastify. */
export const given = {
  ...apps.fastify,
  ...limiting,
  rateLimit: () => rateLimit,
} as const

export async function serve(app: FastifyInstance): Promise<Served> {
  if (!app.hasRoute({ method: "GET", url: "/" })) app.get("/", async () => ({ ok: true }))
  const url = await app.listen({ port: 0, host: "127.0.0.1" })
  return {
    url,
    async close() {
      const ended = app.close()
      app.server.closeAllConnections()
      await ended
    },
  }
}
