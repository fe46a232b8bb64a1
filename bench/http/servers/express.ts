import { once } from "node:events"
import type { AddressInfo } from "node:net"
import { rateLimit } from "@sluice/express"
import express from "express"
import { rateLimit as peer } from "express-rate-limit"
import { countByHand } from "../by-hand.ts"
import { BODY, HEADERS, REFUSAL_BODY, REFUSAL_HEADERS, type StartServer, WINDOW_MS } from "../setup.ts"

export const start: StartServer = async ({ protection, limit }) => {
  const app = express()
  if (protection === "headers") {
    app.use((_request, response, next) => {
      for (const [name, value] of HEADERS) response.setHeader(name, value)
      next()
    })
  }
  if (protection === "refusal") {
    app.use((_request, response) => {
      response.statusCode = 429
      for (const [name, value] of REFUSAL_HEADERS) response.setHeader(name, value)
      response.setHeader("content-length", Buffer.byteLength(REFUSAL_BODY))
      response.end(REFUSAL_BODY)
    })
  }
  if (protection === "by hand") {
    const count = countByHand(limit)
    app.use((request, response, next) => {
      for (const [name, value] of count(request.socket.remoteAddress)) response.setHeader(name, value)
      next()
    })
  }
  if (protection === "sluice") app.use(rateLimit({ limit, window: WINDOW_MS }))
  if (protection === "peer")
    app.use(
      peer({
        windowMs: WINDOW_MS,
        limit,
        standardHeaders: "draft-8",
        legacyHeaders: false,
        ipv6Subnet: 56,
      }),
    )
  app.get("/", (_request, response) => {
    response.json(BODY)
  })
  const server = app.listen(0, "127.0.0.1")
  await once(server, "listening")
  return (server.address() as AddressInfo).port
}
