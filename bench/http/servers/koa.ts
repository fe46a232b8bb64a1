import { once } from "node:events"
import type { AddressInfo } from "node:net"
import { rateLimit } from "@sluice/koa"
import Koa from "koa"
import peer from "koa-ratelimit"
import { countByHand } from "../by-hand.ts"
import { BODY, HEADERS, REFUSAL_BODY, REFUSAL_HEADERS, type StartServer, WINDOW_MS } from "../setup.ts"

export const start: StartServer = async ({ protection, limit }) => {
  const app = new Koa()
  if (protection === "headers") {
    app.use((context, next) => {
      for (const [name, value] of HEADERS) context.set(name, value)
      return next()
    })
  }
  if (protection === "refusal") {
    app.use((context) => {
      context.status = 429
      for (const [name, value] of REFUSAL_HEADERS) context.set(name, value)
      context.body = REFUSAL_BODY
    })
  }
  if (protection === "by hand") {
    const count = countByHand(limit)
    app.use((context, next) => {
      for (const [name, value] of count(context.socket.remoteAddress)) context.set(name, value)
      return next()
    })
  }
  if (protection === "sluice") app.use(rateLimit({ limit, window: WINDOW_MS }))
  if (protection === "peer")
    app.use(
      peer({ driver: "memory", db: new Map(), duration: WINDOW_MS, max: limit, id: (context) => context.ip }),
    )
  app.use((context) => {
    context.body = BODY
  })
  const server = app.listen(0, "127.0.0.1")
  await once(server, "listening")
  return (server.address() as AddressInfo).port
}
