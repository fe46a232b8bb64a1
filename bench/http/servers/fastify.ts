import type { AddressInfo } from "node:net"
import peer from "@fastify/rate-limit"
import { rateLimit } from "@sluice/fastify"
import Fastify from "fastify"
import { countByHand } from "../by-hand.ts"
import { BODY, HEADERS, REFUSAL_BODY, REFUSAL_HEADERS, type StartServer, WINDOW_MS } from "../setup.ts"

export const start: StartServer = async ({ protection, limit }) => {
  const app = Fastify()
  if (protection === "headers") {
    app.addHook("onRequest", (_request, reply, done) => {
      for (const [name, value] of HEADERS) reply.header(name, value)
      done()
    })
  }
  if (protection === "refusal") {
    app.addHook("onRequest", (_request, reply) => {
      reply.code(429)
      for (const [name, value] of REFUSAL_HEADERS) reply.header(name, value)
      // Without this serializer, Fastify would process the string and add a charset.
      reply.serializer(String).send(REFUSAL_BODY)
    })
  }
  if (protection === "by hand") {
    const count = countByHand(limit)
    app.addHook("onRequest", (request, reply, done) => {
      for (const [name, value] of count(request.socket.remoteAddress)) reply.header(name, value)
      done()
    })
  }
  if (protection === "sluice") await app.register(rateLimit, { limit, window: WINDOW_MS })
  if (protection === "peer") await app.register(peer, { max: limit, timeWindow: WINDOW_MS })
  app.get("/", async () => BODY)
  await app.listen({ port: 0, host: "127.0.0.1" })
  return (app.server.address() as AddressInfo).port
}
