import type { AddressInfo } from "node:net"
import { rateLimit } from "@sluice/fastify"
import Fastify from "fastify"
import type { StartApp } from "../app.ts"
import { connectRedis } from "./redis-client.ts"
import { optionsOf } from "./sluice-options.ts"

export const start: StartApp = async (setup) => {
  const client = await connectRedis(setup)
  const { rules, ...options } = optionsOf(setup, client)
  const app = Fastify({ forceCloseConnections: true })
  const [first] = setup.limits
  if (first === undefined) throw new Error("There is no limit")
  await app.register(rateLimit, setup.mount === "route" ? options : { ...options, rules })
  const config = setup.mount === "route" ? { rateLimit: { limit: first.limit, window: first.windowMs } } : {}
  app.get("/", { config }, async () => ({ hello: "world" }))
  await app.listen({ port: 0, host: "127.0.0.1" })
  return {
    port: (app.server.address() as AddressInfo).port,
    async close() {
      await app.close()
      client?.disconnect()
    },
  }
}
