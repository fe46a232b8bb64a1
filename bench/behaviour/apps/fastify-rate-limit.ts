import type { AddressInfo } from "node:net"
import plugin from "@fastify/rate-limit"
import Fastify from "fastify"
import type { StartApp } from "../app.ts"
import { connectRedis } from "./redis-client.ts"

// The client is created as in the README's recommended example. The README offers `skipOnError` for outages of Redis.
// A route can have only one limit, so each limit needs its own registration with its own namespace.
export const start: StartApp = async (setup) => {
  const client = await connectRedis(setup, { connectTimeout: 500, maxRetriesPerRequest: 1 })
  const app = Fastify({ trustProxy: "127.0.0.1", forceCloseConnections: true })
  const [first] = setup.limits
  if (first === undefined) throw new Error("There is no limit")
  for (const { limit, windowMs } of setup.limits) {
    await app.register(plugin, {
      global: setup.mount !== "route",
      max: limit,
      timeWindow: windowMs,
      nameSpace: `fastify-rate-limit-${windowMs}-`,
      skipOnError: true,
      ...(client === undefined ? {} : { redis: client }),
      ...(setup.maxKeys === undefined ? {} : { cache: setup.maxKeys }),
    })
  }
  // This value has the type `object`, because Sluice's plugin declares another type for a route's `rateLimit`.
  const config: object =
    setup.mount === "route" ? { rateLimit: { max: first.limit, timeWindow: first.windowMs } } : {}
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
