import type { Server } from "node:http"
import { createLimiter } from "@sluice/core"
import { type VerifyClientCallbackAsync, WebSocketServer } from "ws"
import type { Surroundings } from "../surroundings.ts"

export function serve(
  server: Server,
  handle: (text: string) => string,
  surroundings: Surroundings = {},
): void {
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
  const verifyClient: VerifyClientCallbackAsync = async ({ req }, verified) => {
    const { allowed, retryAfterMs } = await connections.decide(req)
    verified(allowed, 429, "Too Many Requests", {
      "Retry-After": `${Math.ceil(retryAfterMs / 1000)}`,
    })
  }
  const sockets = new WebSocketServer({ server, verifyClient, maxPayload: 65_536 })
  sockets.on("connection", (socket, { headers, socket: { remoteAddress } }) => {
    // Read the address now, because a closed connection has none.
    const client = { headers, remoteAddress }
    socket.on("error", () => socket.terminate())
    socket.on("message", async (data) => {
      const { allowed, refusal, retryAfterMs } = await messages.decide(client)
      const refused = JSON.stringify({ error: "rate-limited", retryAfterMs })
      socket.send(allowed ? handle(`${data}`) : refused)
      if (refusal === "penalty")
        socket.close(1013, `retry after ${retryAfterMs} ms`)
    })
  })
}
