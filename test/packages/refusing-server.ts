import { once } from "node:events"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"

const REFUSED_FOR_MS = 1_000

/**
 * A server that refuses its third call, and each call in the following second. The server also serves a page at
 * `/page`.
 */
export interface RefusingServer {
  readonly url: string
  readonly counts: { admitted: number; refused: number }
  close(): Promise<void>
}

/**
 * Starts the server. The server's responses contain the header fields of draft-11. Before the third call, the fields
 * state that a unit remains, as if another client took this unit meanwhile. Pages of every origin may read the
 * fields.
 */
export async function startRefusingServer(): Promise<RefusingServer> {
  const counts = { admitted: 0, refused: 0 }
  let refusedAtMs = Number.POSITIVE_INFINITY
  const server = createServer(({ url }, response) => {
    if (url !== "/") return response.writeHead(200, { "content-type": "text/html" }).end("<p>page")
    response.setHeader("access-control-allow-origin", "*")
    response.setHeader("access-control-expose-headers", "RateLimit, RateLimit-Policy, Retry-After")
    response.setHeader("ratelimit-policy", '"default";q=2;w=1')
    const nowMs = performance.now()
    if (counts.admitted === 2 && nowMs < refusedAtMs + REFUSED_FOR_MS) {
      counts.refused++
      refusedAtMs = Math.min(refusedAtMs, nowMs)
      response.setHeader("ratelimit", '"default";r=0;t=1')
      return response.writeHead(429, { "retry-after": "1" }).end()
    }
    counts.admitted++
    return response.setHeader("ratelimit", `"default";r=${counts.admitted === 2 ? 1 : 2};t=1`).end("hello")
  }).listen(0, "127.0.0.1")
  await once(server, "listening")
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    counts,
    async close() {
      server.closeAllConnections()
      server.close()
      await once(server, "close")
    },
  }
}
