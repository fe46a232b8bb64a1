import { createLimiter } from "@sluice/core"
import type { Server, Socket } from "socket.io"
import type { Surroundings } from "../surroundings.ts"

const clientOf = ({ handshake: { headers, address } }: Socket) => ({
  headers,
  remoteAddress: address,
})

/** Limits connections and messages. Call it before you add handlers. */
export function limitSockets(io: Server, surroundings: Surroundings = {}): void {
  const connections = createLimiter({
    ...surroundings,
    name: "connections",
    limit: 10,
    window: "1 minute",
  })
  const messages = createLimiter({
    ...surroundings,
    name: "messages",
    limit: 20,
    window: "10s",
    penalty: { refusals: 50, within: "1 minute", for: "10 minutes" },
  })
  io.use(async (socket, next) => {
    const { allowed, retryAfterMs } = await connections.decide(clientOf(socket))
    if (allowed) return next()
    next(Object.assign(new Error("rate-limited"), { data: { retryAfterMs } }))
  })
  io.on("connection", (socket) => {
    socket.use(async ([event, ...args], next) => {
      const decision = await messages.decide(clientOf(socket))
      if (decision.allowed) return next()
      const { refusal, retryAfterMs } = decision
      const acknowledge = args.at(-1)
      if (typeof acknowledge === "function")
        acknowledge({ error: "rate-limited", retryAfterMs })
      else socket.emit("rate-limited", { event, retryAfterMs })
      if (refusal === "penalty") socket.disconnect(true)
    })
  })
}
