import type { Server } from "node:http"
import { createLimiter } from "@sluice/core"
import { type VerifyClientCallbackAsync, WebSocketServer } from "ws"
import type { Surroundings } from "../surroundings.ts"

type Handle = (text: string) => string

/**
 * Answers messages over WebSockets, and limits the connections and the messages of
 * each client address.
 */
export function serve(
  server: Server,
  handle: Handle,
  surroundings: Surroundings = {},
): void {
  const connections = createLimiter({
    ...surroundings,
    name: "connections",
    limit: 10,
    window: "1 minute",
  })
  const penalty = { refusals: 50, within: "1 minute", for: "10 minutes" }
  const messages = createLimiter({
    ...surroundings,
    name: "messages",
    limit: 20,
    window: "10s",
    penalty,
  })
  const verifyClient: VerifyClientCallbackAsync = async ({ req }, answer) => {
    const { allowed, retryAfterMs } = await connections.decide(req)
    answer(allowed, 429, "Too Many Requests", {
      "Retry-After": `${Math.ceil(retryAfterMs / 1000)}`,
    })
  }
  new WebSocketServer({ server, verifyClient, maxPayload: 65_536 }).on(
    "connection",
    (socket, req) => {
      // Read the address now: a closed connection has none.
      const client = {
        headers: req.headers,
        remoteAddress: req.socket.remoteAddress,
      }
      socket.on("error", () => socket.terminate())
      socket.on("message", async (data) => {
        const { allowed, refusal, retryAfterMs } = await messages.decide(client)
        socket.send(
          allowed
            ? handle(`${data}`)
            : JSON.stringify({ error: "rate-limited", retryAfterMs }),
        )
        if (refusal === "penalty")
          socket.close(1013, `retry after ${retryAfterMs} ms`)
      })
    },
  )
}
